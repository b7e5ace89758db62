import { machineUptime, monotonicTime, processUptime, wallTime } from './runtime.js';

/** How far the wall clock may move away from this clock before the reason is looked for, ms. */
const STEP = 50;
/** The possible error of the kernel's uptime, ms: it counts in hundredths, or in whole seconds without /proc. */
const FINE = 10;
const COARSE = 1_000;
/**
 * Some time passes between the reading of the uptime and the reading of this clock, ms. A measurement that took longer is
 * not used.
 */
const LONGEST_LOOK = 5;
/**
 * For how long of the monotonic clock one reading of the wall clock is enough, ms: code that runs at one go asks for the
 * time many times, and reading both clocks takes twice as long. A process can be stopped for longer than that between its
 * look at the clock and its next step.
 */
const AT_ONE_GO = 0.1;

/**
 * One clock for all copies of this package in the process. They compare moments that others have noted, and a copy that is
 * loaded later has not seen the suspensions before. Its fields have private names because Jest, when a test file has ended,
 * replaces all other fields of objects on globalThis by setters that call themselves.
 */
class Clock {
  /** ms for which the machine has been suspended since this was made, as far as that has been noticed. */
  #suspended = 0;
  /** The wall clock minus the monotonic clock, when a reason for a difference was last looked for. */
  #wall = NaN;
  /** When the two were last compared, on the monotonic clock. */
  #comparedAt = NaN;
  /**
   * The uptime of the machine minus the uptime of the process, which stops while the machine is suspended. Only suspensions
   * make the difference grow.
   */
  #uptimeAhead: number | undefined;
  #resolution = COARSE;

  now(): number {
    const time = monotonicTime();
    // Fake timers of a test may set the monotonic clock back.
    if (!(Math.abs(time - this.#comparedAt) < AT_ONE_GO)) {
      this.#comparedAt = time;
      if (!(Math.abs(wallTime() - time - this.#wall) < STEP)) this.timeSuspended();
    }
    return time + this.#suspended;
  }

  timeSuspended(): number {
    // Fake timers replace neither of the two uptimes.
    const before = processUptime();
    const machine = machineUptime();
    const after = processUptime();
    if ((after - before) * 1_000 > LONGEST_LOOK) return this.#suspended; // the next call tries again
    this.#wall = wallTime() - monotonicTime();
    if (machine === undefined) return this.#suspended;
    if (!Number.isInteger(machine)) this.#resolution = FINE;
    const ahead = (machine - after) * 1_000;
    const step = ahead - (this.#uptimeAhead ?? ahead);
    // Adds the possible error of both readings, to be on the safe side.
    if (step > this.#resolution + 2 * LONGEST_LOOK) this.#suspended += step + this.#resolution + LONGEST_LOOK;
    this.#uptimeAhead = Math.max(this.#uptimeAhead ?? ahead, ahead);
    return this.#suspended;
  }
}

const CLOCK = Symbol.for('nestjs-distributed-lock.clock');
const shared = globalThis as { [CLOCK]?: Clock | undefined };
const clock = (shared[CLOCK] ??= new Clock());

/**
 * Time as this package counts it, ms: this process's monotonic clock, which no NTP step and no daylight saving moves, plus
 * the time for which the machine was suspended. Only Linux stops that clock during a suspension, and its uptime goes on. So
 * does the wall clock, which is cheap to read: a step of the wall clock is the sign to look at the uptime. The wall clock
 * never enters a decision.
 */
export const now = (): number => clock.now();

/** Looks at the uptime. @returns ms for which the machine has been suspended so far */
export const timeSuspended = (): number => clock.timeSuspended();

timeSuspended();
