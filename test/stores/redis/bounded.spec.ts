import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { within } from '../../../lib/stores/redis/bounded.js';
import { CommandTimeout } from '../../../lib/stores/redis/redis-errors.js';

beforeEach(() => {
  jest.useFakeTimers();
});

afterEach(() => {
  jest.useRealTimers();
});

it('a command that is answered leaves no timer', async () => {
  expect(await within(60_000, () => Promise.resolve(1))).toBe(1);
  await expect(within(60_000, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(jest.getTimerCount()).toBe(0);
});

it('a command that is not answered fails when its time is over, and learns of it', async () => {
  let isOver: (() => boolean) | undefined;
  const sent = within(60, (over) => {
    isOver = over;
    return new Promise(() => undefined);
  });
  const failed = expect(sent).rejects.toThrow(CommandTimeout);
  expect(isOver?.()).toBe(false);
  await jest.advanceTimersByTimeAsync(70);
  await failed;
  expect(isOver?.()).toBe(true);
});

it('what a client rejects with is an error in any case', async () => {
  const error = new Error('own');
  await expect(within(1_000, () => Promise.reject(error))).rejects.toBe(error);
  const text: unknown = 'a text';
  // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- as a broken client does
  await expect(within(1_000, () => Promise.reject(text))).rejects.toEqual(new Error('a text'));
});
