import { ENDING } from './signals.js';

/**
 * While the lock is waited for, a signal ends the waiting. From then on to the end, none ends the program, which has a lock to
 * release.
 */
export class StopSignals {
  /** The first that came. */
  received: NodeJS.Signals | undefined;
  private readonly controller = new AbortController();
  private readonly listener = (signal: NodeJS.Signals) => {
    this.received ??= signal;
    this.controller.abort(new Error(signal));
  };

  constructor() {
    for (const signal of ENDING) process.on(signal, this.listener);
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  /** Each signal has its usual effect again. */
  end(): void {
    for (const signal of ENDING) process.off(signal, this.listener);
  }
}
