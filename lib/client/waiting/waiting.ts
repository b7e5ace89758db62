import {
  isLockKindMismatchError,
  isLockUnavailableError,
  LockConfigError,
  LockUnavailableError,
} from '../../api/errors.js';
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
import type { AcquireReply, ReleaseReply } from '../../store/lock-store.js';
import type { Tenure, LeaseTerms } from '../holding/tenure.js';

// What waiting in a local queue and waiting in a store queue have in common.

/** How often the store is asked while there are no messages from it, ms. */
export const POLL = 500;
/** The time that a request under way has left to be answered, ms, when the wait time ends meanwhile. */
export const GRACE = 250;

export interface WaitRequest {
  readonly terms: LeaseTerms;
  /** ms; 0 asks once, Infinity waits for ever. */
  readonly waitTime: number;
  /** ms for which a request that asks once waits for the answer; 0 as long as the store takes. */
  readonly answerTime?: number | undefined;
  readonly signal: AbortSignal | undefined;
  /** The scope of the request: code that runs under a lock gets further locks while the client drains. */
  readonly inside?: Scope | undefined;
  /** Gets how often the store was asked meanwhile. */
  readonly trace?: AcquisitionObserver | undefined;
  /** Of a caller that holds other locks while it waits. */
  readonly nested?: NestedCall | undefined;
}

/** Takes a tenure back when its holder is done with it, or when it is over. */
export interface TenureKeeper {
  /** @returns what the store has answered; undefined when it has not answered yet */
  release(tenure: Tenure): Promise<ReleaseReply | undefined>;
  ended(tenure: Tenure): void;
}

/** The answer to a caller that did not get the lock in time. */
export interface Busy {
  readonly busy: true;
  readonly holder: string | undefined;
  /** ms until the hold in the way ends by itself, if that is known. */
  readonly remainingTime?: number | undefined;
  /** The name of the busy lock, where several locks were asked for. */
  readonly name?: string | undefined;
  /** No owner is known to have the lock; see {@link AcquireReply}. */
  readonly isUndecided?: boolean | undefined;
  /** Too many callers wait already. */
  readonly isFull?: true;
  /** The caller was a member of this deadlock, and ends so that the others go on. */
  readonly cycle?: readonly DeadlockStep[];
}

/** @param remainingTime ms until the hold in the way ends by itself; not positive or not finite where that is not known */
export const busyWith = (holder: string | undefined, remainingTime = Infinity): Busy => ({
  busy: true,
  holder,
  remainingTime: remainingTime > 0 && remainingTime < Infinity ? Math.ceil(remainingTime) : undefined,
});

/** What the store has answered, for the callers. */
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

export function unanswered(name: string, sentAt: number): LockUnavailableError {
  const cause = new Error(`the store has not answered for ${String(Math.round(now() - sentAt))} ms`);
  return new LockUnavailableError(name, { cause });
}

/** A store of the application may reject with anything. */
export const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));

/** Whether the store has certainly not done what it was asked for. */
export const isRefusal = (error: Error): boolean =>
  isLockKindMismatchError(error) || (isLockUnavailableError(error) && error.effect === 'refused');

/**
 * ms until the store is asked again after so many failures: doubled each time, up to a second, and with a random part so
 * that clients do not ask in step.
 */
export const backoff = (failures: number): number =>
  Math.min(50 * 2 ** failures, 1_000) * (0.5 + random() / 2);

/**
 * Whether a timer that fired early would do so for ever. Node's own timers may fire early once, when the process was busy
 * as they were set.
 */
const isEarlyForEver = (elapsed: number, delay: number): boolean => elapsed < delay / 2 && timersAreFaked();

const fakedTimers = (): LockConfigError =>
  new LockConfigError('fake timers', 'must replace performance.now() too: locks count time by it');

/** Ends the wait of a caller. */
export class WaitTimer {
  private timer: NodeJS.Timeout | undefined;
  private cleared = false;

  /**
   * Calls back at the moment. To be set again only when it has called back.
   * @param fail is called instead when timers are faked and the clock is not: the moment would never come
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
      // After a busy moment of this process the timers run first, and a reply that is already here is read only then.
      afterInput(() => {
        if (this.cleared) return;
        const time = now();
        if (time >= moment) callback();
        else if (isEarlyForEver(time - setAt, moment - setAt)) fail(fakedTimers());
        else this.set(moment, callback, fail);
      });
    });
  }

  /** Final: the wait is over. */
  clear(): void {
    this.cleared = true;
    clearTimer(this.timer);
  }
}
