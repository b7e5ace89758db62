import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { LockKindMismatchError, LockUnavailableError } from '../../lib/index.js';
import { Releaser } from '../../lib/store/releaser.js';
import type { ReleaseReply, ReleaseRequest } from '../../lib/store/lock-store.js';

const REQUEST = { name: 'a', owner: 'b:1' };
const HOUR = 3_600_000;
const MINUTE = 60_000;

let sent: number;
let reachable: boolean;
let permanent: boolean;
let last: ReleaseRequest | undefined;
let releaser: Releaser;

beforeEach(() => {
  jest.useFakeTimers();
  sent = 0;
  reachable = false;
  permanent = false;
  releaser = new Releaser({
    release: (request): Promise<ReleaseReply> => {
      sent++;
      last = request;
      const error = new LockUnavailableError('a', { effect: 'refused', permanent });
      return reachable ? Promise.resolve('deleted') : Promise.reject(error);
    },
  });
});

afterEach(async () => {
  await releaser.close();
  jest.useRealTimers();
});

it('a hold is given up until its lease is over, an entry until it has gone by itself, and not often', async () => {
  await releaser.release(REQUEST, performance.now() + 900);
  await jest.advanceTimersByTimeAsync(MINUTE);
  expect(sent).toBe(4);

  sent = 0;
  const from = performance.now();
  await releaser.release(REQUEST, from + 900, { entryUntil: from + HOUR });
  await jest.advanceTimersByTimeAsync(MINUTE);
  expect(sent).toBeGreaterThan(5);
  await jest.advanceTimersByTimeAsync(HOUR);
  // Once a minute, and not ever more rarely.
  expect(sent).toBeGreaterThan(50);
  expect(sent).toBeLessThan(80);
  const [all] = [sent];
  await jest.advanceTimersByTimeAsync(HOUR);
  expect(sent).toBe(all);
});

it('a permanent error is tried again as well: its cause may be mended before the lease is over', async () => {
  permanent = true;
  await releaser.release(REQUEST, performance.now() + 9_000);
  await jest.advanceTimersByTimeAsync(1_000);
  expect(sent).toBe(3);
  reachable = true;
  releaser.hurry();
  expect(sent).toBe(4);
  await jest.advanceTimersByTimeAsync(HOUR);
  expect(sent).toBe(4);
});

it('an answer ends it, and for one that may be overtaken the end of the lease does', async () => {
  const placeUntil = performance.now() + HOUR;
  await releaser.release(REQUEST, performance.now() + 2_000, { entryUntil: placeUntil, insist: true });
  expect(sent).toBe(1);
  reachable = true;
  await jest.advanceTimersByTimeAsync(HOUR);
  expect(sent).toBe(6);

  reachable = false;
  await releaser.release(REQUEST, performance.now() + 2_000, { entryUntil: performance.now() + HOUR });
  reachable = true;
  await jest.advanceTimersByTimeAsync(250);
  expect(sent).toBe(8);
  await jest.advanceTimersByTimeAsync(HOUR);
  expect(sent).toBe(8);
});

it('what waits to be repeated is sent at once when the store is there again', async () => {
  const placeUntil = performance.now() + HOUR;
  await Promise.all(
    [1, 2].map((n) =>
      releaser.release({ ...REQUEST, owner: `b:${String(n)}` }, 0, { entryUntil: placeUntil }),
    ),
  );
  await jest.advanceTimersByTimeAsync(10 * MINUTE);
  sent = 0;
  reachable = true;
  releaser.hurry();
  expect(sent).toBe(2);
  await jest.advanceTimersByTimeAsync(HOUR);
  expect(sent).toBe(2);
});

it('one that follows an acquisition without an answer waits for its own as long as the store is away', async () => {
  await releaser.release(REQUEST, performance.now() + 900, { insist: true });
  await jest.advanceTimersByTimeAsync(24 * HOUR);
  sent = 0;
  reachable = true;
  releaser.hurry();
  expect(sent).toBe(1);
  await jest.advanceTimersByTimeAsync(HOUR);
  expect(sent).toBe(1);
});

it('of the releases that wait beyond the end of the lease the last ten thousand are kept, and none keeps the process alive', async () => {
  const timers = jest.spyOn(globalThis, 'setTimeout');
  const release = (n: number, until: number) =>
    releaser.release({ name: 'a', owner: `b:${String(n)}` }, until, { insist: true });
  await release(0, performance.now() + 900);
  for (let n = 1; n <= 10_002; n++) await release(n, 0);
  expect(jest.getTimerCount()).toBe(10_001);
  const [first, ...rest] = timers.mock.results.map(({ value }) => (value as NodeJS.Timeout).hasRef());
  expect([first, rest.includes(true)]).toEqual([true, false]);
  timers.mockRestore();
  await releaser.close();
  expect(jest.getTimerCount()).toBe(0);
});

it('keepFor counts from the first release, not from the one that arrives', async () => {
  const until = performance.now() + 30_000;
  await releaser.release({ ...REQUEST, keepFor: 1_000 }, until);
  expect(last?.keepFor).toBe(1_000);
  await jest.advanceTimersByTimeAsync(750);
  expect(last?.keepFor).toBe(250);
  await jest.advanceTimersByTimeAsync(10_000);
  expect(last?.keepFor).toBeUndefined();
});

it('what has been released after all is not repeated', async () => {
  await releaser.release(REQUEST, performance.now() + MINUTE);
  reachable = true;
  expect(await releaser.release(REQUEST, performance.now() + MINUTE)).toBe('deleted');
  releaser.hurry();
  await jest.advanceTimersByTimeAsync(MINUTE);
  expect(sent).toBe(2);
});

it('one that the store has refused for good is told of, and not repeated', async () => {
  const mismatch = new LockKindMismatchError('a', { expected: 'plain lock', found: 'fair lock' });
  const failures: unknown[] = [];
  const onFailure = (error: unknown) => failures.push(error);
  const broken = new Error('broken');
  const failing = new Releaser({
    release: () => Promise.reject(sent++ === 0 ? mismatch : broken),
  });
  // The name holds something else, so the hold is gone.
  expect(await failing.release(REQUEST, performance.now() + MINUTE, { onFailure })).toBe('taken');
  expect(failures).toEqual([]);
  expect(await failing.release(REQUEST, performance.now() + MINUTE, { onFailure })).toBeUndefined();
  expect(failures).toEqual([broken]);
  await jest.advanceTimersByTimeAsync(MINUTE);
  expect(sent).toBe(2);
  await failing.close();
});

it('one whose acquisition may arrive later is repeated also where the name holds something else meanwhile', async () => {
  const mismatch = new LockKindMismatchError('a', { expected: 'plain lock', found: 'fair lock' });
  const other = new Releaser({
    release: () => (sent++ === 0 ? Promise.reject(mismatch) : Promise.resolve('deleted' as const)),
  });
  expect(await other.release(REQUEST, performance.now() + MINUTE, { insist: true })).toBe('taken');
  await jest.advanceTimersByTimeAsync(1_000);
  expect(sent).toBeGreaterThan(1);
  await other.close();
});

it('the first failure alone is told of, and what goes with another request goes by itself afterwards', async () => {
  const failures: unknown[] = [];
  const away = () => Promise.reject(new LockUnavailableError('a'));
  let together = 0;
  await releaser.release(REQUEST, performance.now() + MINUTE, {
    onFailure: (error) => failures.push(error),
    send: () => {
      together++;
      return away();
    },
  });
  expect([together, sent]).toEqual([1, 0]);
  await jest.advanceTimersByTimeAsync(1_000);
  expect([together, sent, failures.length]).toEqual([1, 2, 1]);
});

it('the end repeats none, and waits for all that are under way', async () => {
  const answers: (() => void)[] = [];
  const slow = new Releaser({
    release: () =>
      new Promise((_, reject) => {
        answers.push(() => {
          reject(new LockUnavailableError('a'));
        });
      }),
  });
  const releases = [1, 2].map((n) =>
    slow.release({ ...REQUEST, owner: `b:${String(n)}` }, performance.now() + MINUTE),
  );
  let closed = false;
  const closing = slow.close().then(() => (closed = true));
  answers[0]?.();
  await jest.advanceTimersByTimeAsync(0);
  expect(closed).toBe(false);
  answers[1]?.();
  await closing;
  expect(await Promise.all(releases)).toEqual([undefined, undefined]);
  expect(jest.getTimerCount()).toBe(0);
  await jest.advanceTimersByTimeAsync(MINUTE);
  expect(answers).toHaveLength(2);
});
