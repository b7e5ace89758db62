import { idleTimerAt, now } from '../client/holding/deadline.js';
import { onAbort } from '../client/waiting/on-abort.js';
import { GRACE } from '../client/waiting/waiting.js';
import { clearTimer } from '../runtime/runtime.js';

/**
 * Waits for the answer to releases, but not beyond the caller's wait time. A release without an answer is repeated in
 * the background.
 * @param until the end of the caller's wait time, on the monotonic clock
 */
export function untilGivenBack(
  released: Promise<unknown>,
  until: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  if (signal?.aborted === true) return Promise.resolve();
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimer(timer);
      ignore?.();
      resolve();
    };
    const timer = idleTimerAt(Math.max(until, now() + GRACE), end);
    const ignore = signal && onAbort(signal, end);
    void released.then(end);
  });
}
