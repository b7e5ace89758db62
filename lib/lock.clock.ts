import { machineUptime, monotonicTime, processUptime, wallTime } from './lock.runtime.js';

/** How far the wall clock may move away from this clock before the reason is looked for, ms. */
const STEP = 50;
/** The possible error of the kernel's uptime, ms: it counts in hundredths, or in whole seconds where there is no /proc. */
const FINE = 10;
const COARSE = 1_000;
/**
 * Some time passes between the reading of the uptime and the reading of this clock, ms. A measurement that took longer is
 * not used.
 */
const LONGEST_LOOK = 5;
/**
 * For how long of the monotonic clock one reading of the wall clock is enough, ms: what runs at one go asks for the time many
 * times, and reading both clocks takes twice as long. A process can be stopped for longer than that between its look at the
 * clock and what it does next.
 */
const AT_ONE_GO = 0.1;

/** ms for which the machine has been suspended since this was loaded, as far as that has been noticed. */
let suspended = 0;
/** The wall clock minus the monotonic clock, when a reason for a difference was last looked for. */
let wall = NaN;
/** When the two were last compared, on the monotonic clock. */
let comparedAt = NaN;
/**
 * The uptime of the machine minus the uptime of the process, which stops while the machine is suspended. Only suspensions
 * make the difference grow.
 */
let uptimeAhead: number | undefined;
let resolution = COARSE;

/**
 * Time as this package counts it, ms: this process's monotonic clock, which no NTP step and no daylight saving moves, plus
 * the time for which the machine was suspended. Only Linux stops that clock during a suspension, and its uptime goes on. So
 * does the wall clock, which is cheap to read: a step of the wall clock is the sign to look at the uptime. The wall clock
 * never enters a decision.
 */
export function now(): number {
  const time = monotonicTime();
  // Fake timers of a test may set the monotonic clock back.
  if (!(Math.abs(time - comparedAt) < AT_ONE_GO)) {
    comparedAt = time;
    if (!(Math.abs(wallTime() - time - wall) < STEP)) timeSuspended();
  }
  return time + suspended;
}

/** Looks at the uptime. @returns ms for which the machine has been suspended so far */
export function timeSuspended(): number {
  // Fake timers replace neither of the two uptimes.
  const before = processUptime();
  const machine = machineUptime();
  const after = processUptime();
  if ((after - before) * 1_000 > LONGEST_LOOK) return suspended; // the next call tries again
  wall = wallTime() - monotonicTime();
  if (machine === undefined) return suspended;
  if (!Number.isInteger(machine)) resolution = FINE;
  const ahead = (machine - after) * 1_000;
  const step = ahead - (uptimeAhead ?? ahead);
  // Adds the possible error of both readings, to be on the safe side.
  if (step > resolution + 2 * LONGEST_LOOK) suspended += step + resolution + LONGEST_LOOK;
  uptimeAhead = Math.max(uptimeAhead ?? ahead, ahead);
  return suspended;
}

timeSuspended();
