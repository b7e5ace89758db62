import { idleTimerAt, now } from '../holding/deadline.js';
import { GRACE, unanswered } from './waiting.js';
import { clearTimer } from '../../runtime/runtime.js';

/**
 * Waits until the moment, but at least for GRACE.
 * @throws LockUnavailableError if there is no answer by then
 */
export async function answeredBy<T>(until: number, answer: Promise<T>, name: string): Promise<T> {
  const sentAt = now();
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<never>((_, reject) => {
    timer = idleTimerAt(Math.max(until, sentAt + GRACE), () => {
      reject(unanswered(name, sentAt));
    });
  });
  try {
    return await Promise.race([answer, tooLate]);
  } finally {
    clearTimer(timer);
  }
}
