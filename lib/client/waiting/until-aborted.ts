import { LockAbortedError } from '../../api/errors.js';
import { onAbort } from './on-abort.js';

/** Ends the wait for an answer when the signal aborts. The request itself continues. */
export function untilAborted<T>(
  answer: Promise<T>,
  signal: AbortSignal | undefined,
  name: string,
): Promise<T> {
  if (signal === undefined) return answer;
  return new Promise((resolve, reject) => {
    const ignore = onAbort(signal, () => {
      reject(new LockAbortedError(name, signal.reason));
    });
    void answer.then(resolve, reject).finally(ignore);
  });
}
