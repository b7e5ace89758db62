import { clearTimer } from '../../runtime/runtime.js';
import { idleTimerAt, now } from './deadline.js';
import type { Tenure } from './tenure.js';
import { asError } from '../../runtime/thrown.js';
import { type Busy, busyWith } from '../waiting/waiting.js';

/** Most ms that the message of a release may take to return to the process that sent it. */
export const MESSAGE_ROUND = 100;

/** The holder, if the store still has the hold; an error if the store did not answer. */
export type LookAnswer = Busy | Error;

/**
 * Asks the store whether a hold of this process still exists, with one question for all callers. A doubt that arises
 * after the question was sent causes another question, because the answer may be older than the doubt.
 */
export class HoldLook {
  asking: { readonly tenure: Tenure; sentAt: number; sent: boolean } | undefined;
  /** The hold of the next question. */
  private next: Tenure | undefined;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    /** Asks the store about a hold, and ends the hold if it is gone. Rejects if the store did not answer. */
    private readonly look: (tenure: Tenure) => Promise<void>,
    private readonly onAnswer: (tenure: Tenure, sentAt: number, answer: LookAnswer) => void,
  ) {}

  /** A caller that comes after the question was sent must ask again after the answer. */
  async lookAt(tenure: Tenure): Promise<void> {
    if (this.asking !== undefined) {
      if (this.asking.tenure !== tenure) this.next = tenure;
      return;
    }
    const asking = { tenure, sentAt: now(), sent: false };
    this.asking = asking;
    await Promise.resolve(); // all callers of one turn share the answer
    asking.sentAt = now();
    asking.sent = true;
    let answer: LookAnswer = busyWith(tenure.owner, tenure.remainingTime);
    try {
      await this.look(tenure);
    } catch (error) {
      answer = asError(error);
    }
    this.asking = undefined;
    const { next } = this;
    this.next = undefined;
    if (next?.held === true) void this.lookAt(next);
    this.onAnswer(tenure, asking.sentAt, answer);
  }

  /**
   * Called when the lock was released, or when a message of a release may have been missed. The release of a moment ago
   * was most probably the one before a young hold, and its message is late. So the store is asked about a hold only
   * after `MESSAGE_ROUND`, and most holds end before that.
   */
  doubt(tenure: Tenure): void {
    const since = tenure.grantedAt + MESSAGE_ROUND;
    if (now() > since) {
      this.lookAgain(tenure);
      return;
    }
    this.timer ??= idleTimerAt(since, () => {
      this.timer = undefined;
      if (tenure.held) this.lookAgain(tenure);
    });
  }

  ended(): void {
    clearTimer(this.timer);
    this.timer = undefined;
  }

  private lookAgain(tenure: Tenure): void {
    if (this.asking?.sent === true) this.next = tenure;
    else void this.lookAt(tenure);
  }
}
