import { randomUUID } from 'node:crypto';
import { uptime } from 'node:os';
import { setTimeout as sleepReally } from 'node:timers/promises';

// All that the locks take from the runtime: time, timers and chance. No other file of the core, of the locks and of the
// stores names these functions, so that a simulation replaces this one file and decides all of them.
// Each call looks the function up again, because the fake timers of a test may replace it at any time.

type Timer = NodeJS.Timeout;

/** ms of this process's monotonic clock. It stops while the machine is suspended; `now()` of clock.ts does not. */
export const monotonicTime = (): number => performance.now();

/** The wall clock when the monotonic clock was 0, ms. */
export const timeOrigin = (): number => performance.timeOrigin;

/** ms of the wall clock, which may step. It is for people, and never enters a decision about a lock. */
export const wallTime = (): number => Date.now();

/** How long this process has been running, s. It stops while the machine is suspended. */
export const processUptime = (): number => process.uptime();

/** How long the machine has been running, s, suspensions included. Undefined if the platform does not tell that. */
export function machineUptime(): number | undefined {
  try {
    return process.platform === 'linux' ? uptime() : undefined;
  } catch {
    return undefined; // a sandbox that does not tell
  }
}

export const setTimer = (callback: () => void, time: number): Timer => setTimeout(callback, time);

export const clearTimer = (timer: Timer | undefined): void => {
  clearTimeout(timer);
};

export const setRepeatingTimer = (callback: () => void, time: number): Timer => setInterval(callback, time);

export const clearRepeatingTimer = (timer: Timer | undefined): void => {
  clearInterval(timer);
};

/** Lets the process end before the timer fires. */
export const idle = (timer: Timer): Timer => {
  // Browser timers, which jsdom provides for tests, are numbers, and end with the window.
  (timer as Partial<Timer>).unref?.();
  return timer;
};

/** Undoes `idle`. */
export const awake = (timer: Timer): Timer => {
  (timer as Partial<Timer>).ref?.();
  return timer;
};

/** Fake timers do not delay it. */
export const sleep = (time: number): Promise<void> => sleepReally(time);

/** Calls back when all arrived data of the network have been read. */
export const afterInput = (callback: () => void): void => {
  setImmediate(callback);
};

/** Calls back when the code that runs now, and no other, has come to its end. */
export const afterStep = (callback: () => void): void => {
  queueMicrotask(callback);
};

const nextTick = process.nextTick.bind(process);

/**
 * Calls back at the end of this turn of the event loop, even if fake timers of a test are installed later. If they were
 * installed before this file was loaded, the real function is not available. Then a promise, which no fake timers replace, calls
 * back a little earlier.
 */
export const atEndOfTurn: (callback: () => void) => void =
  'clock' in (Reflect.get(process, 'nextTick') as object)
    ? (callback) => void Promise.resolve().then(callback)
    : (callback) => {
        nextTick(callback);
      };

/** From 0 to 1. */
export const random = (): number => Math.random();

/**
 * Without the random bytes that Node keeps in store for this: they are part of a startup snapshot, and two processes that
 * start from one snapshot would make the same ids.
 */
export const uuid = (): string => randomUUID({ disableEntropyCache: true });

/** Whether timers are those of @sinonjs/fake-timers, which Jest and Vitest use. They have a clock of their own. */
export const timersAreFaked = (): boolean => 'clock' in setTimeout;

/** Jest's legacy fake timers: their setImmediate also waits to be called, and they leave the clock as it is. */
export const timersAreLegacy = (): boolean => {
  const { getMockImplementation } = setTimeout as {
    getMockImplementation?: () => { name: string } | undefined;
  };
  return getMockImplementation?.()?.name.includes('_fakeSetTimeout') === true;
};
