import { EXIT } from './exit-code.js';
import { codeOfSignal } from './run/signals.js';

const KEYS = new Set(['q', 'Q', '\x03', '\x04', '\x1b']);
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;

/** How a program that would go on for ever is stopped: by a key of the terminal, or by a signal. */
export class Stopping {
  /** Undefined until then. Ctrl-C is what it is meant to be stopped by. */
  exitCode: number | undefined;
  readonly stopped: Promise<undefined>;
  private resolve: () => void = () => undefined;

  constructor() {
    this.stopped = new Promise((resolve) => {
      this.resolve = () => {
        resolve(undefined);
      };
    });
    for (const signal of SIGNALS) process.on(signal, this.onSignal);
    if (!process.stdin.isTTY) return;
    process.stdin.setRawMode(true);
    process.stdin.on('data', this.onKey);
    process.stdin.resume();
  }

  get isStopped(): boolean {
    return this.exitCode !== undefined;
  }

  /** Ends early when it is stopped. */
  async sleep(time: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    await Promise.race([this.stopped, new Promise((resolve) => (timer = setTimeout(resolve, time)))]);
    clearTimeout(timer);
  }

  /** The terminal is as it was. */
  end(): void {
    for (const signal of SIGNALS) process.off(signal, this.onSignal);
    if (!process.stdin.isTTY) return;
    process.stdin.off('data', this.onKey);
    process.stdin.setRawMode(false);
    process.stdin.pause();
  }

  private readonly onKey = (keys: Buffer): void => {
    if (KEYS.has(keys.toString())) this.stop(EXIT.done);
  };

  private readonly onSignal = (signal: NodeJS.Signals): void => {
    this.stop(signal === 'SIGINT' ? EXIT.done : codeOfSignal(signal));
  };

  private stop(exitCode: number): void {
    this.exitCode ??= exitCode;
    this.resolve();
  }
}
