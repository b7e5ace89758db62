import type { LockStore, ReleaseRequest } from './lock-store.js';
import { isLockUnavailableError, type LockError } from '../lock.errors.js';

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
}

/**
 * Sees to it that a release arrives. One that got no answer is repeated in the background until the store has
 * answered or the lease has certainly run out there, so that no lock stays behind with nobody knowing that they
 * own it. Owners are never used twice, so a release that comes late harms nobody.
 */
export class Releaser {
  private readonly retries = new Map<ReleaseRequest, NodeJS.Timeout>();
  private readonly underway = new Set<Promise<unknown>>();
  private closed = false;

  constructor(private readonly store: Pick<LockStore, 'release'>) {}

  /**
   * Sends the release at once, before anything that the caller does next. Never rejects.
   * @param until when the lease has ended in the store all the same, on the monotonic clock
   * @returns whether the owner held the lock; undefined when the store has not answered yet
   */
  async release(
    request: ReleaseRequest,
    until: number,
    options: ReleaseOptions = {},
  ): Promise<boolean | undefined> {
    const sending = this.send(request, until, FIRST_RETRY, options);
    this.underway.add(sending);
    try {
      return await sending;
    } finally {
      this.underway.delete(sending);
    }
  }

  /** Waits for the releases under way, and repeats none: nobody is left to send them. */
  async close(): Promise<void> {
    this.closed = true;
    for (const timer of this.retries.values()) clearTimeout(timer);
    this.retries.clear();
    await Promise.all(this.underway);
  }

  private async send(
    request: ReleaseRequest,
    until: number,
    pause: number,
    { onFailure, insist = false }: ReleaseOptions,
  ): Promise<boolean | undefined> {
    let answer: boolean | undefined;
    let futile = false;
    try {
      answer = await this.store.release(request);
    } catch (error) {
      futile = !isLockUnavailableError(error) || error.permanent;
      onFailure?.(error as LockError);
    }
    const arrived = answer !== undefined && !insist;
    if (!arrived && !futile && !this.closed && performance.now() + pause < until) {
      const timer = setTimeout(() => {
        this.retries.delete(request);
        void this.send(request, until, Math.min(pause * 2, LONGEST_PAUSE), { insist });
      }, pause);
      this.retries.set(request, timer);
    }
    return answer;
  }
}
