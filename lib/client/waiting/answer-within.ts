import { LockAbortedError, type LockUnavailableError } from '../../api/errors.js';
import { isLockUnavailableError } from '../../api/error-guards.js';
import { afterInput, clearTimer } from '../../runtime/runtime.js';
import { idleTimerAt, now, pauseFor } from '../holding/deadline.js';
import { onAbort } from './on-abort.js';
import { backoff, GRACE, unanswered } from './waiting.js';

interface Bounds {
  /** On the monotonic clock. */
  readonly until?: number;
  /** ms for which the wait lasts at least. @default GRACE, the time of an answer of the store */
  readonly least?: number;
  readonly signal?: AbortSignal | undefined;
  /** Why nothing can be sent now, if the store knows. */
  readonly outage?: () => LockUnavailableError | undefined;
  /** @default one that keeps no process alive */
  readonly timer?: typeof idleTimerAt;
}

/**
 * Ends the wait for an answer at a moment, and when a signal aborts. The request itself continues.
 * @throws LockUnavailableError, LockAbortedError
 */
export function answerWithin<T>(
  answer: Promise<T>,
  name: string,
  { until = Infinity, least = GRACE, signal, outage, timer: timerOf = idleTimerAt }: Bounds,
): Promise<T> {
  if (until === Infinity && signal === undefined) return answer;
  const sentAt = now();
  let timer: NodeJS.Timeout | undefined;
  let ignore: (() => void) | undefined;
  const bound = new Promise<never>((_, reject) => {
    const tooLate = () => {
      reject(unanswered(name, sentAt, outage?.()));
    };
    // An answer that arrived while the process was busy is read first.
    const look = () => {
      afterInput(tooLate);
    };
    if (until < Infinity) timer = timerOf(Math.max(until, sentAt + least), look);
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

/**
 * Asks the store again after each lost answer.
 * @param ask may throw another error, which ends the questions
 * @param until the moment after which no further question begins, on the monotonic clock
 */
export async function untilAnswered<T>(ask: () => Promise<T>, until = Infinity): Promise<T> {
  for (let failures = 0; ; failures++) {
    const pause = backoff(failures);
    try {
      return await ask();
    } catch (error) {
      if (!isLockUnavailableError(error) || error.permanent || now() + pause >= until) throw error;
    }
    await pauseFor(pause);
  }
}
