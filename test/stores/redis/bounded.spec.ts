import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { bounded, within } from '../../../lib/stores/redis/connection/bounded.js';
import { CommandTimeout } from '../../../lib/stores/redis/connection/redis-errors.js';

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

describe('a command that is sent again', () => {
  const late = async <T>(time: number, answer: () => T): Promise<T> => {
    await new Promise((resolve) => setTimeout(resolve, time));
    return answer();
  };
  const refused = (): never => {
    throw new Error('NOSCRIPT');
  };

  let answers: unknown[];
  const answered = (answer: unknown) => answers.push(answer);
  beforeEach(() => {
    answers = [];
  });

  it('has what is left of the time', async () => {
    bounded(100, () => late(60, refused), {
      resolve: answered,
      reject: answered,
      again: () => late(60, () => 'too late'),
    });
    await jest.advanceTimersByTimeAsync(99);
    expect(answers).toEqual([]);
    await jest.advanceTimersByTimeAsync(100);
    expect(answers).toEqual([new CommandTimeout(100)]);
  });

  it.each([
    ['succeeds', () => 'granted', 'granted'],
    ['fails', refused, new Error('NOSCRIPT')],
  ])('has one answer, also where it %s', async (_, answer, expected) => {
    bounded(100, () => late(10, refused), {
      resolve: answered,
      reject: answered,
      again: () => late<string>(10, answer),
    });
    await jest.advanceTimersByTimeAsync(500);
    expect(answers).toEqual([expected]);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('is not sent where the time is over: the error comes with that', async () => {
    const over: boolean[] = [];
    bounded(50, () => late(60, refused), {
      resolve: answered,
      reject: answered,
      again: (_, isOver) => {
        over.push(isOver);
        return undefined;
      },
    });
    await jest.advanceTimersByTimeAsync(100);
    expect(over).toEqual([true]);
    expect(answers).toEqual([new CommandTimeout(50)]);
  });
});

it('what a client rejects with is an error in any case', async () => {
  const error = new Error('own');
  await expect(within(1_000, () => Promise.reject(error))).rejects.toBe(error);
  const text: unknown = 'a text';
  // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- as a broken client does
  await expect(within(1_000, () => Promise.reject(text))).rejects.toEqual(new Error('a text'));
});
