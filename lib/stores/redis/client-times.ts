import { LockConfigError } from '../../lock.errors.js';

/** The longest delay of Node's timers, ms. One that is longer fires at once. */
const LONGEST = 2_147_483_647;

/** `connectTimeout`, `slotsRefreshInterval`, `retryDelayOnFailover`, `keepAlive`… */
const TIME = /Timeout|Interval|Delay|Time$|^keepAlive$/;

/**
 * Checks the times among options that are passed on to ioredis, those of a cluster and of its nodes included.
 * @throws LockConfigError when one overflows a timer
 */
export function assertClientTimes(option: string, options: object): void {
  for (const [name, value] of Object.entries(options) as [string, unknown][]) {
    const path = `${option}.${name}`;
    if ((name === 'options' || name === 'redisOptions') && typeof value === 'object' && value !== null) {
      assertClientTimes(path, value);
    } else if (typeof value === 'number' && TIME.test(name) && !(value <= LONGEST)) {
      throw new LockConfigError(path, `must be at most ${String(LONGEST)} ms, the longest delay of a timer`, {
        value,
      });
    }
  }
}
