import { closeTogether, type Closing } from '../client/holding/closing.js';
import { idleTimerAt, now, timerAt } from '../client/holding/deadline.js';
import { clearTimer } from '../runtime/runtime.js';
import type { ServiceState } from './service-state.js';

/** ms for which a hook waits for running work: that of a term after its signal, and callbacks under locks at the end. */
const WORK_END = 1_000;
/** ms for which later hooks may wait for the work of a service that is not closed after the last one. */
const LATER_HOOKS = 60_000;

/**
 * Begins to close services together. They count as closing before any listener is called, because a listener may call
 * `close`.
 */
export function beginClosing(
  states: readonly ServiceState[],
  setTimer: typeof timerAt,
  least?: number,
): Closing {
  let settle: (closed: Promise<void>) => void = () => undefined;
  const ended = new Promise<void>((resolve) => {
    settle = resolve;
  });
  for (const state of states) {
    state.closing = ended.finally(() => {
      state.draining = false;
    });
    // In the background, no code learns of a store of the application that cannot close.
    state.closing.catch(() => undefined);
  }
  for (const state of states) void state.endTerms();
  const closing = closeTogether(
    states.map(({ client }) => client),
    setTimer,
    least,
  );
  settle(closing.closed);
  return closing;
}

/** Closes services together in a hook of their application. Work that only a later hook ends is not waited for. */
export async function closeInHook(states: readonly ServiceState[]): Promise<void> {
  const begun = states.flatMap(({ closing }) => closing ?? []);
  const open = states.filter(({ closing }) => closing === undefined);
  const least = states.every(({ closesLast }) => closesLast) ? 0 : LATER_HOOKS;
  const { released, closed, isInUse } = beginClosing(open, idleTimerAt, least);
  await released;
  const all = Promise.all([closed, Promise.allSettled(begun)]);
  // Such a callback may need answers of the store for its end, as for a nested lock or the note of `once`.
  await (isInUse || begun.length > 0 ? endedSoon(all) : all);
}

/** Waits for work that may need a later hook for its end. The timer keeps the process alive meanwhile. */
export async function endedSoon(ended: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = timerAt(now() + WORK_END, resolve);
  });
  await Promise.race([ended, late]).finally(() => {
    clearTimer(timer);
  });
}
