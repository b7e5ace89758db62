import { afterInput, clearTimer, setTimer } from '../../lock.runtime.js';
import { CommandTimeout } from './redis-errors.js';

/**
 * Sends a command that has `time` ms to be answered.
 * @param send is given a function that tells whether the time is over
 * @throws CommandTimeout
 */
export function within<T>(time: number, send: (over: () => boolean) => Promise<T>): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    let over = false;
    // The command is sent first, so that the timer does not delay what waits for its reply.
    const sent = send(() => over);
    const timer = setTimer(() => {
      // A process that was busy or stopped finds its timers due before it reads. A reply that has already arrived counts.
      afterInput(() => {
        over = true;
        reject(new CommandTimeout(time));
      });
    }, time);
    sent.then(
      (reply) => {
        clearTimer(timer);
        resolve(reply);
      },
      (error: unknown) => {
        clearTimer(timer);
        reject(error instanceof Error ? error : new Error(String(error)));
      },
    );
  });
}
