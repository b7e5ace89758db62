import { LockAbortedError } from '../../api/errors.js';
import { clearTimer } from '../../runtime/runtime.js';
import { idleTimerAt, now } from '../holding/deadline.js';
import { onAbort } from './on-abort.js';
import { GRACE, unanswered } from './waiting.js';

interface Bounds {
  /** On the monotonic clock. The wait lasts at least for GRACE. */
  readonly until?: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Ends the wait for an answer at a moment, and when a signal aborts. The request itself continues.
 * @throws LockUnavailableError, LockAbortedError
 */
export function answerWithin<T>(
  answer: Promise<T>,
  name: string,
  { until = Infinity, signal }: Bounds,
): Promise<T> {
  if (until === Infinity && signal === undefined) return answer;
  const sentAt = now();
  let timer: NodeJS.Timeout | undefined;
  let ignore: (() => void) | undefined;
  const bound = new Promise<never>((_, reject) => {
    const tooLate = () => {
      reject(unanswered(name, sentAt));
    };
    if (until < Infinity) timer = idleTimerAt(Math.max(until, sentAt + GRACE), tooLate);
    ignore =
      signal &&
      onAbort(signal, () => {
        reject(new LockAbortedError(name, signal.reason));
      });
  });
  return Promise.race([answer, bound]).finally(() => {
    clearTimer(timer);
    ignore?.();
  });
}

/**
 * Waits for the answer to releases, but not beyond the caller's wait time. A release without an answer is repeated in
 * the background.
 */
export const untilGivenBack = (released: Promise<unknown>, bounds: Bounds): Promise<void> =>
  answerWithin(released, '', bounds).then(done, done);

const done = (): void => undefined;
