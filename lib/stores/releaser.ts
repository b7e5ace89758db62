import type { LockStore, ReleaseReply, ReleaseRequest } from './lock-store.js';
import { isLockKindMismatchError, isLockUnavailableError, type LockError } from '../lock.errors.js';
import { now } from '../lock.clock.js';

/** First pause before a release is repeated, ms; doubled each time, up to a minute. */
const FIRST_RETRY = 250;
const LONGEST_PAUSE = 60_000;

export interface ReleaseOptions {
  /** Hears of the first failure. */
  readonly onFailure?: (error: LockError) => void;
  /**
   * Repeats it although it was answered: the acquisition went over a connection that is gone, whose last words may
   * still be on their way and arrive after the release.
   */
  readonly insist?: boolean;
  /**
   * When a place of the owner's in a queue has gone by itself, on the monotonic clock. That is long after the end of a
   * lease, so the release is repeated until then as long as it has no answer.
   */
  readonly placeUntil?: number;
}

/** A release that waits to be repeated. */
interface Retry {
  readonly timer: NodeJS.Timeout;
  send(): void;
}

/**
 * Sees to it that a release arrives. One that got no answer is repeated in the background until the store has
 * answered or the lease has certainly run out there, so that no lock stays behind with nobody knowing that they
 * own it. Owners are never used twice, so a release that comes late harms nobody.
 */
export class Releaser {
  private readonly retries = new Map<ReleaseRequest, Retry>();
  private readonly underway = new Set<Promise<unknown>>();
  private closed = false;

  constructor(private readonly store: Pick<LockStore, 'release'>) {}

  /**
   * Sends the release at once, before anything that the caller does next. Never rejects.
   * @param until when the lease has ended in the store all the same, on the monotonic clock
   * @returns what the store has answered; undefined when it has not yet
   */
  async release(
    request: ReleaseRequest,
    until: number,
    options: ReleaseOptions = {},
  ): Promise<ReleaseReply | undefined> {
    const sending = this.send(request, until, FIRST_RETRY, options);
    this.underway.add(sending);
    try {
      return await sending;
    } finally {
      this.underway.delete(sending);
    }
  }

  /** Repeats at once what waits to be repeated: the store can be reached again. */
  hurry(): void {
    for (const retry of [...this.retries.values()]) retry.send();
  }

  /** Waits for the releases under way, and repeats none: nobody is left to send them. */
  async close(): Promise<void> {
    this.closed = true;
    for (const { timer } of this.retries.values()) clearTimeout(timer);
    this.retries.clear();
    await Promise.all(this.underway);
  }

  private async send(
    request: ReleaseRequest,
    until: number,
    pause: number,
    { onFailure, insist = false, placeUntil = until }: ReleaseOptions,
  ): Promise<ReleaseReply | undefined> {
    let answer: ReleaseReply | undefined;
    let futile = false;
    try {
      answer = await this.store.release(request);
    } catch (error) {
      // Something else stands under the name: a lock of another kind, or what is no lock.
      if (isLockKindMismatchError(error)) return 'taken';
      futile = !isLockUnavailableError(error) || error.permanent;
      onFailure?.(error as LockError);
    }
    const arrived = answer !== undefined && !insist;
    const end = answer === undefined ? Math.max(until, placeUntil) : until;
    if (!arrived && !futile && !this.closed && now() + pause < end) {
      const send = () => {
        clearTimeout(timer);
        this.retries.delete(request);
        void this.send(request, until, Math.min(pause * 2, LONGEST_PAUSE), { insist, placeUntil });
      };
      const timer = setTimeout(send, pause);
      // A process that ends is not listening any more, which tells the store as much.
      if (now() >= until) timer.unref();
      this.retries.set(request, { timer, send });
    }
    return answer;
  }
}
