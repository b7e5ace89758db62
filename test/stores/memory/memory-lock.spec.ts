import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { CLAIM, type QueueMessage } from '../../../lib/store/queue-messages.js';
import { MemoryLock } from '../../../lib/stores/memory/memory-lock.js';
import type { QueueTerms } from '../../../lib/store/index.js';

const LEASE = 60_000;

let told: [owner: string, message: QueueMessage][];
let dead: Set<string>;
let outsiders: number;
let woken: number;
let lastToken: number;

beforeEach(() => {
  jest.useFakeTimers();
  [told, dead, outsiders, woken, lastToken] = [[], new Set(), 0, 0, 0];
});

afterEach(() => {
  jest.restoreAllMocks();
  jest.useRealTimers();
});

const pass = (ms: number) => {
  jest.advanceTimersByTime(ms);
};

const lockOf = (kind: QueueTerms['kind'], capacity = 1) => {
  const lock = new MemoryLock(kind, capacity, {
    nextToken: (least = 0) => (lastToken = Math.max(lastToken + 1, least)),
    microseconds: () => Math.floor(performance.now() * 1_000),
    tell: (owner, message) => {
      if (dead.has(owner)) return false;
      told.push([owner, message]);
      return true;
    },
    outsiders: () => outsiders,
    tellOutsiders: () => {
      woken++;
    },
  });
  const terms = { kind, mode: kind === 'semaphore' ? 'shared' : 'exclusive', capacity } as const;
  const queue = { ...terms, entry: { arrival: undefined }, ownWriteHold: undefined };
  return {
    lock,
    enter: (owner: string, leaseTime = LEASE, arrival?: number) =>
      lock.enter({ name: 'a', owner, leaseTime, queue: { ...queue, entry: { arrival } } }),
    leave: (owner: string, next?: string) =>
      lock.leave(
        { name: 'a', owner, queue: terms },
        next === undefined ? next : { owner: next, leaseTime: LEASE },
      ),
    order: () => [...lock.queue].map(({ owner }) => owner),
  };
};

describe('a waiter in the queue of a lock in memory', () => {
  it('is passed over where its client is gone', () => {
    const { lock, enter, leave, order } = lockOf('fair');
    for (const owner of ['h:1', 'a:1', 'b:1', 'c:1']) enter(owner);
    dead.add('a:1');
    leave('h:1');
    expect([lock.holders.owners, order()]).toEqual([['b:1'], ['c:1']]);
  });

  it('hears when to look where it becomes the first, and so do some behind it where a claim is in the way', () => {
    const { enter, leave } = lockOf('fair');
    const waiters = ['a:1', 'a:2', 'b:1', 'c:1', 'd:1', 'e:1', 'f:1', 'b:2'];
    for (const owner of ['h:1', 'first:1', ...waiters]) enter(owner);
    pass(2 * CLAIM);
    leave('h:1');
    const within = told.map(([owner, message]) => [
      owner,
      message.type,
      'within' in message && message.within,
    ]);
    expect(within).toEqual([
      ['first:1', 'granted', false],
      ['a:1', 'next', CLAIM],
      // The first of each other client: the nearest, then twice as far each time, and the last.
      ['b:1', 'next', CLAIM + 20],
      ['c:1', 'next', CLAIM + 30],
      ['e:1', 'next', CLAIM + 50],
      ['f:1', 'next', CLAIM + 60],
    ]);
    told = [];
    enter('first:1');
    expect(told).toEqual([]);
  });
});

describe('a plain lock in memory that waiters outside of its queue want, too', () => {
  const released = (random: number, ...waiters: string[]) => {
    const made = lockOf('lock');
    for (const owner of ['h:1', ...waiters]) made.enter(owner);
    outsiders = 1;
    [told, woken] = [[], 0];
    jest.spyOn(Math, 'random').mockReturnValue(random);
    made.leave('h:1');
    return { ...made, told: told.map(([owner, { type }]) => `${owner} ${type}`), woken };
  };

  it('is left to them by chance, about as often as two of them come for each of the queue', () => {
    // One of two, for two turns each.
    expect(released(0.24, 'a:1')).toMatchObject({ told: ['a:1 next'], woken: 1 });
    expect(told[0]?.[1]).toMatchObject({ within: 10, listen: true });
    expect(released(0.25, 'a:1')).toMatchObject({ told: ['a:1 granted'], woken: 0 });
    expect(told[0]?.[1]).toMatchObject({ rivals: 'outside' });
    expect(released(0.17, 'a:1', 'b:1').told).toEqual(['a:1 granted', 'b:1 next']);
    expect(released(0.16, 'a:1', 'b:1').told).toEqual(['a:1 next', 'b:1 next']);
    expect(told[1]?.[1]).toMatchObject({ within: CLAIM + 10 });
  });

  it('is not left to them where there are none, or where its owner asks again', () => {
    const made = lockOf('lock');
    made.enter('h:1');
    jest.spyOn(Math, 'random').mockReturnValue(0);
    expect(made.leave('h:1', 'h:2')).toMatchObject({
      released: 'released',
      next: { granted: true, rivals: 'none' },
    });
    outsiders = 1;
    const left = made.leave('h:2', 'h:3');
    expect(left).toMatchObject({
      released: 'released',
      next: { granted: false, retryAfter: 10, listen: true },
    });
    expect([woken, made.order(), told]).toEqual([1, ['h:3'], []]);
    // A request that is sent twice finds what it has done.
    jest.spyOn(Math, 'random').mockReturnValue(0.9);
    expect(made.leave('h:2', 'h:3')).toMatchObject({
      released: 'deleted',
      next: { granted: true, rivals: 'outside' },
    });
    pass(LEASE / 2);
    expect(made.leave('h:2', 'h:3')).toMatchObject({ released: 'taken', next: { granted: true } });
    expect(made.lock.holders.get('h:3')?.expiresAt).toBe(performance.now() + LEASE);
  });
});
