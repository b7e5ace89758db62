import { now } from '../../runtime/clock.js';
import { idle, setTimer } from '../../runtime/runtime.js';

export { now };

/** The longest delay that Node's timers take. A longer one would fire at once. */
const MAX_DELAY = 2_147_483_647;

/** How much of a lease is not promised, ms. The two clocks may differ by 1 %, and Redis expires to the millisecond. */
export const driftOf = (leaseTime: number): number => leaseTime * 0.01 + 2;

/**
 * Until when a lease is promised. `sentAt` is read before the command leaves. So the store's own end of the lease is always
 * later, regardless of how long the reply took.
 */
export const deadlineOf = (sentAt: number, leaseTime: number): number =>
  sentAt + leaseTime - driftOf(leaseTime);

/**
 * A lease that promises no more than the `left` ms until `maxHoldTime` is over. So the store frees the lock then, even if
 * this process is gone.
 */
export const leaseWithin = (leaseTime: number, left: number): number =>
  Math.min(leaseTime, Math.max(1, Math.ceil((left + 2) / 0.99)));

/** Whole ms until a moment of the monotonic clock; 0 when it is over. */
export const msUntil = (moment: number): number => Math.max(0, Math.ceil(moment - now()));

/** A timer for a moment of the monotonic clock, at any distance. It may fire early where that is too far for one timer. */
export const timerAt = (moment: number, callback: () => void): NodeJS.Timeout =>
  setTimer(callback, Math.min(msUntil(moment), MAX_DELAY));

/** As `timerAt`, but the timer keeps no process alive. */
export const idleTimerAt = (moment: number, callback: () => void): NodeJS.Timeout =>
  idle(timerAt(moment, callback));
