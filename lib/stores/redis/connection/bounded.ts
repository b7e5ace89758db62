import { afterInput, clearTimer, setTimer } from '../../../runtime/runtime.js';
import { asError, promiseOf } from '../../../runtime/thrown.js';
import { CommandTimeout } from './redis-errors.js';

/**
 * Sends a command that has `time` ms to be answered.
 * @throws CommandTimeout
 */
export const within = <T>(time: number, send: () => Promise<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    // The command is sent first, so that the timer does not delay what waits for its reply.
    const sent = promiseOf(send);
    const timer = setTimer(() => {
      // A process that was busy or stopped finds its timers due before it reads. A reply that has already arrived counts.
      afterInput(() => {
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
        reject(asError(error));
      },
    );
  });
