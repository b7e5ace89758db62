import { NotAdmitted } from './redis-errors.js';

/** How ioredis reports that a sentinel is well, and does not watch such a master. */
const UNKNOWN_MASTER = /invalid reply: null|No such master with that name/;

/** How ioredis reports that a sentinel does not let this client in. */
const REFUSED = /\bbecause (?:NOAUTH|NOPERM|WRONGPASS)\b/;

/** The answers of sentinels since the last connection. The error after a round of all does not say why it failed. */
export class SentinelRound {
  private answers: Error[] = [];

  answered(answer: unknown): void {
    if (answer instanceof Error) this.answers.push(answer);
  }

  /** A sentinel has named the master. */
  succeeded(): void {
    this.answers = [];
  }

  /** Why no sentinel could name the master; undefined if none has answered. */
  failed(): Error | undefined {
    const { answers } = this;
    this.answers = [];
    const last = answers.at(-1);
    if (last === undefined) return undefined;
    if (UNKNOWN_MASTER.test(last.message)) {
      return new Error('no sentinel knows a master of this name', { cause: last });
    }
    // A sentinel that is only away may know the master when it is back.
    return answers.every(({ message }) => REFUSED.test(message)) ? new NotAdmitted(last) : last;
  }
}
