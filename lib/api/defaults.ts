/** Each default with the rule behind it. */
export const DEFAULTS = Object.freeze({
  /** Keeps the keys of locks apart from the application's. */
  keyPrefix: 'lock:',
  /** Redisson's watchdog timeout: long enough for a bad network minute, short enough to wait out a crash. */
  leaseTime: 30_000,
  /** As long as a web client accepts to wait. */
  waitTime: 10_000,
  /** Only tests have one. */
  maxWaitTime: Infinity,
  /** The watchdog goes on as long as the holder does. */
  maxHoldTime: Infinity,
  /** Saves 16 of 17 round trips, and delays another process by 16 short holds at most. */
  localHandoff: 16,
  /** A line in the log costs nothing, and a call that is refused may have been harmless. */
  lockOrder: 'warn',
  /** One caller that fails at once is better than two that fail after their wait times. */
  deadlock: 'break',
  /** Callers wait for a bounded time already. */
  maxWaiting: Infinity,
  /** An outage that is shorter than the wait time costs no call. */
  failFast: false,
  /** A method that calls another one, which takes the same lock, goes on. */
  reentrant: true,
  /** A decorator means a lock. */
  enabled: true,
  isGlobal: true,
  /** The threshold depends on the work. */
  longWaitTime: Infinity,
  longHoldTime: Infinity,
});
