import { CommandTimeout } from './redis-errors.js';

/**
 * Sends a command that has so many ms to be answered.
 * @param send is given a way to ask whether the time is over
 * @throws CommandTimeout
 */
export function within<T>(time: number, send: (over: () => boolean) => Promise<T>): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    let over = false;
    // Sent first: whoever waits for what it brings need not wait for this timer, too.
    const sent = send(() => over);
    const timer = setTimeout(() => {
      // A process that was busy or stopped finds its timers due before it reads: a reply that is already here counts.
      setImmediate(() => {
        over = true;
        reject(new CommandTimeout(time));
      });
    }, time);
    sent.then(
      (reply) => {
        clearTimeout(timer);
        resolve(reply);
      },
      (error: unknown) => {
        clearTimeout(timer);
        reject(error instanceof Error ? error : new Error(String(error)));
      },
    );
  });
}
