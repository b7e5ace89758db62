import { now, timerAt } from '../client/holding/deadline.js';
import { EXIT } from './exit-code.js';
import { codeOfSignal } from './run/signals.js';

/** Also among others that have come with them, but not within the sequence of another key, such as F2. */
const KEYS = /^(?:\x1b$|[^\x1b]*[qQ\x03\x04])/;
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;

/** How a program that would go on for ever is stopped: by a key of the terminal, or by a signal. */
export class Stopping {
  /** Undefined until then. Ctrl-C is the usual way to stop it. */
  exitCode: number | undefined;
  readonly stopped: Promise<undefined>;
  private readonly hasKeys: boolean;
  private resolve: () => void = () => undefined;

  /** @param byKeys the terminal is its own; else keys are left to the programs beside it */
  constructor({ byKeys }: { byKeys: boolean }) {
    this.hasKeys = byKeys && process.stdin.isTTY;
    this.stopped = new Promise((resolve) => {
      this.resolve = () => {
        resolve(undefined);
      };
    });
    for (const signal of SIGNALS) process.on(signal, this.onSignal);
    if (!this.hasKeys) return;
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
    await Promise.race([
      this.stopped,
      new Promise<void>((resolve) => (timer = timerAt(now() + time, resolve))),
    ]);
    clearTimeout(timer);
  }

  /** The terminal is as it was. */
  end(): void {
    for (const signal of SIGNALS) process.off(signal, this.onSignal);
    if (!this.hasKeys) return;
    process.stdin.off('data', this.onKey);
    process.stdin.setRawMode(false);
    process.stdin.pause();
  }

  private readonly onKey = (keys: Buffer): void => {
    if (KEYS.test(keys.toString())) this.stop(EXIT.done);
  };

  private readonly onSignal = (signal: NodeJS.Signals): void => {
    this.stop(signal === 'SIGINT' ? EXIT.done : codeOfSignal(signal));
  };

  private stop(exitCode: number): void {
    this.exitCode ??= exitCode;
    this.resolve();
  }
}
