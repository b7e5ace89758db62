import { afterInput, clearTimer, setTimer } from '../../../runtime/runtime.js';
import { CommandTimeout } from './redis-errors.js';

/** The handler of the one answer to a command. */
interface Outcome<T> {
  resolve(reply: T): void;
  reject(error: Error): void;
  /**
   * The command failed. The time for it goes on.
   * @param isOver the time has ended, and there has been an answer
   * @returns the command to send instead; undefined if the error is the answer
   */
  again?(error: unknown, isOver: boolean): Promise<T> | undefined;
}

/** Sends a command that has `time` ms to be answered: with CommandTimeout, if it is not. */
export function bounded<T>(time: number, send: () => Promise<T>, outcome: Outcome<T>): void {
  let isOver = false;
  // The command is sent first, so that the timer does not delay what waits for its reply.
  const sent = sentBy(send);
  const timer = setTimer(() => {
    // A process that was busy or stopped finds its timers due before it reads. A reply that has already arrived counts.
    afterInput(() => {
      if (isOver) return;
      isOver = true;
      outcome.reject(new CommandTimeout(time));
    });
  }, time);
  /** @returns false if there has been an answer */
  const end = (): boolean => {
    if (isOver) return false;
    isOver = true;
    clearTimer(timer);
    return true;
  };
  const resolve = (reply: T) => {
    if (end()) outcome.resolve(reply);
  };
  const reject = (error: unknown) => {
    if (end()) outcome.reject(asError(error));
  };
  sent.then(resolve, (error: unknown) => {
    const next = sentBy(() => outcome.again?.(error, isOver) ?? Promise.reject(asError(error)));
    next.then(resolve, reject);
  });
}

export const asError = (thrown: unknown): Error =>
  thrown instanceof Error ? thrown : new Error(String(thrown));

/** A client that the application has changed may throw. */
function sentBy<T>(send: () => Promise<T>): Promise<T> {
  try {
    return send();
  } catch (error) {
    return Promise.reject(asError(error));
  }
}

/**
 * Sends a command that has `time` ms to be answered.
 * @throws CommandTimeout
 */
export const within = <T>(time: number, send: () => Promise<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    bounded(time, send, { resolve, reject });
  });
