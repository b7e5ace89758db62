import { isWorthAnotherTry } from './another-try.js';
import type { LockStore, ReleaseReply, ReleaseRequest } from './lock-store.js';
import { type LockError } from '../api/errors.js';
import { isLockKindMismatchError, isLockUnavailableError } from '../api/error-guards.js';
import { now } from '../runtime/clock.js';
import { clearTimer, idle, setTimer } from '../runtime/runtime.js';
import { promiseOf } from '../runtime/thrown.js';

/**
 * The pause before a release is repeated the first time, ms. It doubles each time, up to a minute, or half of the time left.
 */
const FIRST_RETRY = 250;
const LONGEST_PAUSE = 60_000;

/**
 * How many releases may wait beyond the end of their lease for a store that stays unreachable. Callers that go on trying
 * make new releases for as long as that lasts, so each release above the limit makes the process give up the oldest.
 */
const MOST_OVERDUE = 10_000;

export interface ReleaseOptions {
  /** Is called when the first attempt fails. */
  readonly onFailure?: (error: LockError) => void;
  /**
   * The acquisition got no answer, so it may arrive later than the release: with the last data of a connection that is gone,
   * or because a client of the application sends it again when it is connected again, however long that takes. The release
   * is repeated until the end of the lease although it was answered, and beyond that until it is answered.
   */
  readonly insist?: boolean;
  /**
   * When the owner's entry in a store queue has ended by itself, on the monotonic clock. That is long after the end of a
   * lease, so the release is repeated until then as long as it has no answer.
   */
  readonly entryUntil?: number;
  /** Sends the release the first time, together with another request. */
  readonly send?: ((request: ReleaseRequest) => Promise<ReleaseReply>) | undefined;
}

/** A release, each time that it is sent. */
interface Sending {
  readonly request: ReleaseRequest;
  readonly until: number;
  readonly options: ReleaseOptions;
  /** When it is sent the first time; only if `keepFor` counts from there. */
  readonly first: number;
}

/** A release that waits to be repeated. */
interface Retry {
  readonly timer: NodeJS.Timeout;
  send(): void;
}

/**
 * Makes sure that a release arrives. A release that got no answer is repeated in the background until the store has answered
 * or the lease has certainly ended there. Otherwise a lock would stay behind, and no process would know that it owns the
 * lock. A lease that may begin only when the store can be reached again has no such end. Owners are never used twice, so a
 * late release does no harm.
 */
export class Releaser {
  private readonly retries = new Map<ReleaseRequest, Retry>();
  /** The retries that wait beyond the end of their lease, the oldest first. */
  private readonly overdue = new Set<ReleaseRequest>();
  /** How many releases have been sent and not answered. */
  private underway = 0;
  private onIdle: (() => void) | undefined;
  private closed = false;

  constructor(private readonly store: Pick<LockStore, 'release'>) {}

  /**
   * Sends the release at once, before anything that the caller does next. Never rejects.
   * @param until when the lease has ended in the store in any case, on the monotonic clock
   * @returns the answer of the store; undefined while there is none
   */
  release(
    request: ReleaseRequest,
    until: number,
    options: ReleaseOptions = {},
  ): Promise<ReleaseReply | undefined> {
    const first = request.keepFor === undefined ? 0 : now();
    return this.send({ request, until, options, first }, FIRST_RETRY);
  }

  /** Sends at once every release that waits to be repeated: the store can be reached again. */
  hurry(): void {
    for (const retry of [...this.retries.values()]) retry.send();
  }

  /** Waits for the releases under way, and repeats none: nothing is left to send them. */
  async close(): Promise<void> {
    this.closed = true;
    for (const request of [...this.retries.keys()]) this.forget(request);
    if (this.underway === 0) return;
    await new Promise<void>((resolve) => {
      this.onIdle = resolve;
    });
  }

  /** Not an async function, which costs more: each release comes this way. */
  private send(sending: Sending, doubled: number): Promise<ReleaseReply | undefined> {
    const { request, options } = sending;
    this.underway++;
    return this.ask(sending).then(
      (answer) => this.answered(sending, doubled, answer),
      (error: unknown) => {
        // The name holds something else: a lock of another kind, or a value that is no lock.
        if (isLockKindMismatchError(error)) return this.answered(sending, doubled, 'taken');
        if (doubled === FIRST_RETRY && isWorthAnotherTry(error as Error)) {
          const again = this.send({ ...sending, options: { ...options, send: undefined } }, 2 * doubled);
          this.over();
          return again;
        }
        this.over();
        options.onFailure?.(error as LockError);
        // A permanent error is repeated too: a password, a right or the database may be restored before the lease has ended.
        if (isLockUnavailableError(error)) this.repeat(sending, doubled, undefined);
        else this.forget(request);
        return undefined;
      },
    );
  }

  private answered(sending: Sending, doubled: number, answer: ReleaseReply): ReleaseReply {
    const { request, options } = sending;
    this.over();
    if (options.insist === true) this.repeat(sending, doubled, answer);
    else this.forget(request);
    return answer;
  }

  private ask({ request, options, first }: Sending): Promise<ReleaseReply> {
    return promiseOf(() => options.send?.(request) ?? this.store.release(asOf(request, first)));
  }

  /** A release has its answer, or gets none. */
  private over(): void {
    if (--this.underway === 0) this.onIdle?.();
  }

  private repeat(sending: Sending, doubled: number, answer: ReleaseReply | undefined): void {
    const { request, until, options, first } = sending;
    const { insist = false, entryUntil = until } = options;
    const unansweredUntil = insist ? Infinity : Math.max(until, entryUntil);
    const end = answer === undefined ? unansweredUntil : until;
    // The store may be repaired, or the acquisition may arrive, late in the lease. The lock must not stay until the end
    // then.
    const pause = Math.min(doubled, Math.max((end - now()) / 2, FIRST_RETRY));
    const next = now() + pause;
    if (this.closed || next >= end) {
      this.forget(request);
      return;
    }
    const send = () => {
      clearTimer(timer);
      this.retries.delete(request);
      const again = Math.min(doubled * 2, LONGEST_PAUSE);
      void this.send({ request, until, options: { insist, entryUntil }, first }, again);
    };
    const timer = setTimer(send, pause);
    this.retries.set(request, { timer, send });
    if (next >= until) {
      // A process that ends has no subscription any more. That also tells the store that the entry is given up.
      idle(timer);
      this.wait(request);
    }
  }

  private wait(request: ReleaseRequest): void {
    this.overdue.add(request);
    const [oldest] = this.overdue.size > MOST_OVERDUE ? this.overdue : [];
    if (oldest !== undefined) this.forget(oldest);
  }

  private forget(request: ReleaseRequest): void {
    clearTimer(this.retries.get(request)?.timer);
    this.retries.delete(request);
    this.overdue.delete(request);
  }
}

/** `keepFor`, the time for which no other owner gets the lock, counts from the first time that the release was sent. */
function asOf(request: ReleaseRequest, first: number): ReleaseRequest {
  const { keepFor } = request;
  if (keepFor === undefined) return request;
  const left = Math.ceil(keepFor - (now() - first));
  return { ...request, keepFor: left > 0 ? left : undefined };
}
