import { LockConfigError, LockUnavailableError } from '../../api/errors.js';
import { isLockKindMismatchError, isLockUnavailableError } from '../../api/error-guards.js';
import type { DeadlockStep } from '../../api/deadlock.js';
import type { AcquisitionObserver } from '../../api/tracing-channels.js';
import {
  afterInput,
  afterStep,
  clearTimer,
  random,
  timersAreFaked,
  timersAreLegacy,
} from '../../runtime/runtime.js';
import { now, timerAt } from '../holding/deadline.js';
import type { NestedCall } from '../deadlock/nested-call.js';
import type { Scope } from '../scope/scope.js';
import type { AcquireReply } from '../../store/lock-store.js';
import type { LeaseTerms } from '../holding/tenure.js';

// Shared by waits in a local queue and waits in a store queue.

/** Pause between two requests without messages of the store, ms. */
export const POLL = 500;
/** Time, ms, that a request under way still has for its answer after the wait time has ended. */
export const GRACE = 250;

export interface WaitRequest {
  readonly terms: LeaseTerms;
  /** ms; 0 asks once, Infinity waits without limit. */
  readonly waitTime: number;
  /** ms for which a request that asks once waits for the answer; 0 waits as long as the store takes. */
  readonly answerTime?: number | undefined;
  readonly signal: AbortSignal | undefined;
  /** The scope of the request: code under a lock gets further locks while the client closes. */
  readonly inside?: Scope | undefined;
  /** Gets the number of requests. */
  readonly trace?: AcquisitionObserver | undefined;
  /** Set if the caller holds other locks while it waits. */
  readonly nested?: NestedCall | undefined;
}

/** The answer to a caller that did not get the lock in time. */
export interface Busy {
  readonly busy: true;
  readonly holder: string | undefined;
  /** ms until the hold in the way ends by itself, if known. */
  readonly remainingTime?: number | undefined;
  /** The name of the busy lock, if several locks were requested. */
  readonly name?: string | undefined;
  /** No owner is known to have the lock; see {@link AcquireReply}. */
  readonly isUndecided?: boolean | undefined;
  /** The queue has its maximum of waiters. */
  readonly isFull?: true;
  /** The deadlock of which the caller was a member. The caller's wait ends so that the others continue. */
  readonly cycle?: readonly DeadlockStep[];
}

/** @param remainingTime ms until the hold in the way ends by itself; not positive or not finite if unknown */
export const busyWith = (holder: string | undefined, remainingTime = Infinity): Busy => ({
  busy: true,
  holder,
  remainingTime: remainingTime > 0 && remainingTime < Infinity ? Math.ceil(remainingTime) : undefined,
});

/** The store's refusal as an answer to callers. */
export const refusedWith = ({
  holder,
  retryAfter,
  undecided,
}: Pick<Extract<AcquireReply, { granted: false }>, 'holder' | 'retryAfter' | 'undecided'>): Busy => ({
  ...busyWith(holder, retryAfter),
  isUndecided: undecided,
});

export function tooLate(name: string): LockUnavailableError {
  const cause = new Error('the answer came after the end of the lease that it granted');
  return new LockUnavailableError(name, { cause });
}

/** @param outage why nothing can be sent now, if the store knows: the better reason */
export function unanswered(
  name: string,
  sentAt: number,
  outage?: LockUnavailableError,
): LockUnavailableError {
  const silence = `the store has not answered for ${String(Math.round(now() - sentAt))} ms`;
  return new LockUnavailableError(name, { cause: outage?.cause ?? new Error(silence) });
}

/** Whether the store has certainly not carried out the request. */
export const isRefusal = (error: Error): boolean =>
  isLockKindMismatchError(error) || (isLockUnavailableError(error) && error.effect === 'refused');

/**
 * ms until the next request after a number of failures: doubled each time up to 1 s, with a random part so that clients
 * do not ask in step.
 */
export const backoff = (failures: number): number =>
  Math.min(50 * 2 ** failures, 1_000) * (0.5 + random() / 2);

/**
 * Whether a timer that fired early would do so for ever. Node's own timers may fire early once, if the process was busy
 * when they were set.
 */
const isEarlyForEver = (elapsed: number, delay: number): boolean => elapsed < delay / 2 && timersAreFaked();

const fakedTimers = (): LockConfigError =>
  new LockConfigError('fake timers', 'must replace performance.now() too: locks count time by it');

/** The timer of one caller's wait time. */
export class WaitTimer {
  private timer: NodeJS.Timeout | undefined;
  private cleared = false;

  /**
   * Calls back at the moment. May be set again only after it has called back.
   * @param fail is called instead if timers are faked but the clock is not, because then the moment never comes
   */
  set(moment: number, callback: () => void, fail: (error: Error) => void): void {
    const setAt = now();
    if (timersAreLegacy()) {
      afterStep(() => {
        if (!this.cleared) fail(fakedTimers());
      });
      return;
    }
    this.timer = timerAt(moment, () => {
      // After a busy moment of this process, timers run before the arrived replies are read.
      afterInput(() => {
        if (this.cleared) return;
        const time = now();
        if (time >= moment) callback();
        else if (isEarlyForEver(time - setAt, moment - setAt)) fail(fakedTimers());
        else this.set(moment, callback, fail);
      });
    });
  }

  /** Final, when the wait has ended. */
  clear(): void {
    this.cleared = true;
    clearTimer(this.timer);
  }
}
