import { uptime } from 'node:os';

/** By how much the wall clock may leave ours before it is found out why, ms. */
const STEP = 50;
/** What the kernel's uptime may be off by, ms: it counts in hundredths, or in whole seconds where there is no /proc. */
const FINE = 10;
const COARSE = 1_000;
/** Between its reading and that of our clock some time passes, ms. A measurement that took longer says nothing. */
const LONGEST_LOOK = 5;

/** ms for which the machine has been suspended since this was loaded, as far as that has been noticed. */
let suspended = 0;
/** The wall clock, less ours, when the two were last compared. */
let wall = NaN;
/** The uptime of the machine, less that of the process, which stands still with it: it grows by suspensions alone. */
let uptimeAhead: number | undefined;
let resolution = COARSE;

/**
 * Time as this package counts it, ms: this process's monotonic clock, which no NTP step and no daylight saving moves, and
 * what it has missed while the machine was suspended. Only Linux stops that clock then, and its uptime goes on. So does the
 * wall clock, which is cheap to read: a step of it is the sign to look at the uptime. It never enters a decision.
 */
export function now(): number {
  const time = performance.now();
  if (!(Math.abs(Date.now() - time - wall) < STEP)) timeSuspended();
  return time + suspended;
}

/** Looks at the uptime. @returns ms for which the machine has been suspended so far */
export function timeSuspended(): number {
  // Neither uptime is among what fake timers replace.
  const before = process.uptime();
  const machine = machineUptime();
  const after = process.uptime();
  if ((after - before) * 1_000 > LONGEST_LOOK) return suspended; // the next call tries again
  wall = Date.now() - performance.now();
  if (machine === undefined) return suspended;
  if (!Number.isInteger(machine)) resolution = FINE;
  const ahead = (machine - after) * 1_000;
  const step = ahead - (uptimeAhead ?? ahead);
  // On the safe side, by what the two may be off.
  if (step > resolution + 2 * LONGEST_LOOK) suspended += step + resolution + LONGEST_LOOK;
  uptimeAhead = Math.max(uptimeAhead ?? ahead, ahead);
  return suspended;
}

function machineUptime(): number | undefined {
  try {
    return process.platform === 'linux' ? uptime() : undefined;
  } catch {
    return undefined; // a sandbox that does not tell
  }
}

timeSuspended();
