import { beforeEach, expect, it, jest } from '@jest/globals';
import { within } from '../../../lib/stores/redis/connection/bounded.js';
import { CommandTimeout } from '../../../lib/stores/redis/connection/redis-errors.js';

beforeEach(() => {
  jest.useFakeTimers();
});

it('a command that is answered leaves no timer', async () => {
  expect(await within(60_000, () => Promise.resolve(1))).toBe(1);
  await expect(within(60_000, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(jest.getTimerCount()).toBe(0);
});

it('a command that is not answered fails when its time is over', async () => {
  const failed = expect(within(60, () => new Promise(() => undefined))).rejects.toThrow(CommandTimeout);
  await jest.advanceTimersByTimeAsync(70);
  await failed;
  expect(jest.getTimerCount()).toBe(0);
});

it('what a client throws is an answer, and leaves no timer', async () => {
  const error = new Error('own');
  const thrown = within(60_000, () => {
    throw error;
  });
  await expect(thrown).rejects.toBe(error);
  expect(jest.getTimerCount()).toBe(0);
});

it('what a client rejects with is an error in any case', async () => {
  const error = new Error('own');
  await expect(within(1_000, () => Promise.reject(error))).rejects.toBe(error);
  const text: unknown = 'a text';
  // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- as a broken client does
  await expect(within(1_000, () => Promise.reject(text))).rejects.toEqual(new Error('a text'));
});
