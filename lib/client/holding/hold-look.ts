import { clearTimer } from '../../runtime/runtime.js';
import { idleTimerAt, now } from './deadline.js';
import type { Tenure } from './tenure.js';
import { asError, type Busy, busyWith } from '../waiting/waiting.js';

/** How long the message of a release may take to come back to the process that sent it, ms. */
export const MESSAGE_ROUND = 100;

/** The answer of the store about a hold that it still has, or the reason why there is no answer. */
export type LookAnswer = Busy | Error;

/**
 * Asks the store whether a hold of this process still exists, once for all callers that want to know it. Asks once more
 * when a doubt arises while a question is under way, because the answer may be older than the doubt.
 */
export class HoldLook {
  /** The question that is under way. */
  asking: { readonly tenure: Tenure; sentAt: number; sent: boolean } | undefined;
  /** The hold to look at once that question is answered. */
  private next: Tenure | undefined;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    /** Asks the store about a hold, and ends one that is gone. Rejects when the store did not answer. */
    private readonly look: (tenure: Tenure) => Promise<void>,
    private readonly onAnswer: (tenure: Tenure, sentAt: number, answer: LookAnswer) => void,
  ) {}

  /** A caller that comes after the question has been sent has to ask again after the answer. */
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
   * The lock has been released, or a message of a release may have been missed. For a young hold, the release is most
   * probably the one before the hold, and its message is late. So this hold is looked at only when it has outlasted
   * `MESSAGE_ROUND`, and most holds end before that.
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

  /** The hold is over. */
  ended(): void {
    clearTimer(this.timer);
    this.timer = undefined;
  }

  private lookAgain(tenure: Tenure): void {
    if (this.asking?.sent === true) this.next = tenure;
    else void this.lookAt(tenure);
  }
}
