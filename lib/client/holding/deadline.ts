import { now } from '../../runtime/clock.js';
import { idle, setTimer } from '../../runtime/runtime.js';

export { now };

/** The longest delay of a Node timer. A longer delay would fire at once. */
const MAX_DELAY = 2_147_483_647;

/** The part of a lease that is not promised, ms. The two clocks may differ by 1 %, and Redis expires to the millisecond. */
export const driftOf = (leaseTime: number): number => leaseTime * 0.01 + 2;

/**
 * The end of the promise of a lease. `sentAt` is read before the command leaves, so the store ends the lease later, no
 * matter how long the reply takes.
 */
export const deadlineOf = (sentAt: number, leaseTime: number): number =>
  sentAt + leaseTime - driftOf(leaseTime);

/**
 * A lease that promises at most the `left` ms until the end of `maxHoldTime`, so that the store frees the lock then
 * even if this process has crashed.
 */
export const leaseWithin = (leaseTime: number, left: number): number =>
  Math.min(leaseTime, Math.max(1, Math.ceil((left + 2) / 0.99)));

/** Passes over thousands of locks or waits rest for so many times as long as they took. */
const REST = 10;
/** Longest such rest, ms. The measured time of a pass may include a freeze of the process of any length. */
const LONGEST_REST = 500;

/** The rest after a pass that began at the moment, ms: passes take about a tenth of the time of the process at most. */
export const restAfter = (begun: number): number => Math.min(REST * (now() - begun), LONGEST_REST);

/** Whole ms until a moment of the monotonic clock; 0 if it has passed. */
export const msUntil = (moment: number): number => Math.max(0, Math.ceil(moment - now()));

/** A timer for a moment of the monotonic clock at any distance. It fires early if the distance exceeds one timer. */
export const timerAt = (moment: number, callback: () => void): NodeJS.Timeout =>
  setTimer(callback, Math.min(msUntil(moment), MAX_DELAY));

/** As `timerAt`, but the timer keeps no process alive. */
export const idleTimerAt = (moment: number, callback: () => void): NodeJS.Timeout =>
  idle(timerAt(moment, callback));

/** The timer keeps the process alive. */
export const pauseFor = (time: number): Promise<void> =>
  new Promise((resolve) => {
    timerAt(now() + time, resolve);
  });
