import { NotAdmitted } from './redis-errors.js';

/** How ioredis tells that a sentinel is well, and does not watch such a master. */
const UNKNOWN_MASTER = /invalid reply: null|No such master with that name/;

/** How it tells that a sentinel does not let this client in. */
const REFUSED = /\bbecause (?:NOAUTH|NOPERM|WRONGPASS)\b/;

/** What sentinels have said since the last connection. The error after a round of all of them does not say why. */
export class SentinelRound {
  private answers: Error[] = [];

  heard(answer: unknown): void {
    if (answer instanceof Error) this.answers.push(answer);
  }

  /** A sentinel has named the master. */
  succeeded(): void {
    this.answers = [];
  }

  /** Why no sentinel could name the master; undefined where none has said anything. */
  failed(): Error | undefined {
    const { answers } = this;
    this.answers = [];
    const last = answers.at(-1);
    if (last === undefined) return undefined;
    if (UNKNOWN_MASTER.test(last.message)) {
      return new Error('no sentinel knows a master of this name', { cause: last });
    }
    // One that is only away may know the master when it is back.
    return answers.every(({ message }) => REFUSED.test(message)) ? new NotAdmitted(last) : last;
  }
}
