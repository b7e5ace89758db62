import type { LockStore, ReleaseReply, ReleaseRequest } from './lock-store.js';
import { isLockKindMismatchError, isLockUnavailableError, type LockError } from '../lock.errors.js';
import { now } from '../lock.clock.js';

/** First pause before a release is repeated, ms; doubled each time, up to a minute, or half of what is left. */
const FIRST_RETRY = 250;
const LONGEST_PAUSE = 60_000;

/**
 * How many releases may wait beyond the end of their lease for a store that stays away. Callers that go on trying make new
 * ones for as long as that lasts, so the oldest is given up for each that is too many.
 */
const MOST_OVERDUE = 10_000;

export interface ReleaseOptions {
  /** Hears of the first failure. */
  readonly onFailure?: (error: LockError) => void;
  /**
   * The acquisition got no answer, so that it may arrive later than the release: with the last words of a connection that
   * is gone, or because a client of the application sends it again when it is connected again, however long that takes.
   * The release is repeated until the end of the lease although it was answered, and beyond that until it is answered.
   */
  readonly insist?: boolean;
  /**
   * When a place of the owner's in a queue has gone by itself, on the monotonic clock. That is long after the end of a
   * lease, so the release is repeated until then as long as it has no answer.
   */
  readonly placeUntil?: number;
  /** Sends it the first time, together with something else. */
  readonly send?: ((request: ReleaseRequest) => Promise<ReleaseReply>) | undefined;
}

/** A release that waits to be repeated. */
interface Retry {
  readonly timer: NodeJS.Timeout;
  send(): void;
}

/**
 * Sees to it that a release arrives. One that got no answer is repeated in the background until the store has
 * answered or the lease has certainly run out there, so that no lock stays behind with nobody knowing that they
 * own it. A lease that may begin only when the store is there again has no such end. Owners are never used twice, so a
 * release that comes late harms nobody.
 */
export class Releaser {
  private readonly retries = new Map<ReleaseRequest, Retry>();
  /** Those of them that wait beyond the end of their lease, the oldest first. */
  private readonly overdue = new Set<ReleaseRequest>();
  private readonly underway = new Set<Promise<unknown>>();
  private closed = false;

  constructor(private readonly store: Pick<LockStore, 'release'>) {}

  /**
   * Sends the release at once, before anything that the caller does next. Never rejects.
   * @param until when the lease has ended in the store all the same, on the monotonic clock
   * @returns what the store has answered; undefined when it has not yet
   */
  release(
    request: ReleaseRequest,
    until: number,
    options: ReleaseOptions = {},
  ): Promise<ReleaseReply | undefined> {
    return this.track(this.send(request, until, FIRST_RETRY, options));
  }

  private async track<T>(sending: Promise<T>): Promise<T> {
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
    for (const request of [...this.retries.keys()]) this.forget(request);
    await Promise.all(this.underway);
  }

  private async send(
    request: ReleaseRequest,
    until: number,
    doubled: number,
    { onFailure, insist = false, placeUntil = until, send: sendFirst }: ReleaseOptions,
    first = now(),
  ): Promise<ReleaseReply | undefined> {
    let answer: ReleaseReply | undefined;
    let futile = false;
    try {
      answer = await (sendFirst?.(request) ?? this.store.release(asOf(request, first)));
    } catch (error) {
      // Something else stands under the name: a lock of another kind, or what is no lock.
      if (isLockKindMismatchError(error)) return 'taken';
      // Nor is a permanent error the end: a password, a right or the database may be given back before the lease is over.
      futile = !isLockUnavailableError(error);
      onFailure?.(error as LockError);
    }
    const arrived = answer !== undefined && !insist;
    const unansweredUntil = insist ? Infinity : Math.max(until, placeUntil);
    const end = answer === undefined ? unansweredUntil : until;
    // What is mended, or arrives, late in the lease is no reason to leave the lock until its end.
    const pause = Math.min(doubled, Math.max((end - now()) / 2, FIRST_RETRY));
    const next = now() + pause;
    if (arrived || futile || this.closed || next >= end) {
      this.forget(request);
      return answer;
    }
    const send = () => {
      clearTimeout(timer);
      this.retries.delete(request);
      const again = Math.min(doubled * 2, LONGEST_PAUSE);
      void this.track(this.send(request, until, again, { insist, placeUntil }, first));
    };
    const timer = setTimeout(send, pause);
    this.retries.set(request, { timer, send });
    if (next >= until) {
      // A process that ends is not listening any more, which tells the store of a place as much.
      timer.unref();
      this.wait(request);
    }
    return answer;
  }

  private wait(request: ReleaseRequest): void {
    this.overdue.add(request);
    if (this.overdue.size <= MOST_OVERDUE) return;
    for (const oldest of this.overdue) {
      this.forget(oldest);
      return;
    }
  }

  private forget(request: ReleaseRequest): void {
    clearTimeout(this.retries.get(request)?.timer);
    this.retries.delete(request);
    this.overdue.delete(request);
  }
}

/** The time for which nobody else gets the lock counts from the first time that the release was sent. */
function asOf(request: ReleaseRequest, first: number): ReleaseRequest {
  const { keepFor } = request;
  if (keepFor === undefined) return request;
  const left = Math.ceil(keepFor - (now() - first));
  return { ...request, keepFor: left > 0 ? left : undefined };
}
