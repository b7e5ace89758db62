import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { LockLostError } from '../../lib/index.js';
import { type LockEvent, LockService, LockUnavailableError } from '../../lib/index.js';
import type { HoldState } from '../../lib/store/index.js';
import { deferred } from '../doubles/deferred.js';
import { ScriptedStore } from '../doubles/scripted-store.js';

const unreachable = () => {
  throw new LockUnavailableError(undefined, { cause: new Error('away') });
};

let store: ScriptedStore;
let locks: LockService;
let events: LockEvent[];

beforeEach(() => {
  jest.useFakeTimers();
  store = new ScriptedStore();
  // The one look at holds when messages begin to be heard is not the watchdog's: here they never do.
  store.subscribeToQueue = () => Promise.reject(new LockUnavailableError(undefined, {}));
  locks = new LockService({ store, leaseTime: 30_000 });
  events = [];
  locks.events$.subscribe((event) => events.push(event));
});

afterEach(async () => {
  await locks.onApplicationShutdown();
  jest.useRealTimers();
});

/** Leases that are all due 10 s from now, in a store that answers renewals only when it is told to. */
async function manyDueAtOnce(count: number) {
  const asked: string[] = [];
  let gate = deferred();
  const renew = store.renew.bind(store);
  store.onRenew = () => gate.promise;
  jest.spyOn(store, 'renew').mockImplementation((requests) => {
    asked.push(...requests.map(({ name }) => name));
    return renew(requests);
  });
  const answer = () => {
    gate.resolve();
    gate = deferred();
  };
  const names = Array.from({ length: count - 1_000 }, (_, n) => `long${String(n)}`);
  const shorter = Array.from({ length: 1_000 }, (_, n) => `short${String(n)}`);
  const leases = await Promise.all([
    ...names.map((name) => locks.acquire(name)),
    ...shorter.map((name) => locks.acquire(name, { leaseTime: 29_000, renew: true })),
  ]);
  return { leases, asked, answer };
}

describe('the watchdog', () => {
  it('renews at a third of the lease', async () => {
    const lease = await locks.acquire('a');
    await jest.advanceTimersByTimeAsync(9_999);
    expect(store.calls.renew).toBe(0);
    await jest.advanceTimersByTimeAsync(2);
    expect(store.calls.renew).toBe(1);
    expect(lease.remainingTime()).toBeGreaterThan(29_000);
    await jest.advanceTimersByTimeAsync(290_000);
    expect(store.calls.renew).toBe(30);
    expect(lease.held).toBe(true);
  });

  it('renews 100 leases together', async () => {
    for (let n = 0; n < 100; n++) {
      await locks.acquire(`a${String(n)}`);
      jest.advanceTimersByTime(10);
    }
    await jest.advanceTimersByTimeAsync(10_000);
    expect(store.calls.renew).toBe(1);
  });

  it('gives the store a few thousand leases at a time, first those that end first, and none that is released before its turn', async () => {
    const { leases, asked, answer } = await manyDueAtOnce(2_500);
    await jest.advanceTimersByTimeAsync(10_000);
    expect(asked).toHaveLength(2_000);
    // The last thousand were taken for a shorter time: due with the others, they end first.
    expect(asked.slice(0, 1_000).every((name) => name.startsWith('short'))).toBe(true);
    const standing = leases.filter(({ name }) => !asked.includes(name));
    const released = standing.splice(0, 400);
    await Promise.all(released.map((lease) => lease.release()));
    answer();
    await jest.advanceTimersByTimeAsync(0);
    expect(asked.slice(2_000)).toEqual(standing.map(({ name }) => name));
    answer();
    await jest.advanceTimersByTimeAsync(0);
    const renewed = leases.filter(({ held }) => held);
    expect(renewed).toHaveLength(2_100);
    expect(renewed.every((lease) => lease.remainingTime() > 20_000)).toBe(true);
  });

  it('renews the leases of other nodes while one does not answer', async () => {
    Object.assign(store, { nodeOf: (name: string) => name.slice(0, 4) });
    const renew = store.renew.bind(store);
    jest
      .spyOn(store, 'renew')
      .mockImplementation((requests) =>
        requests[0]?.name.startsWith('dead') === true
          ? requests.map(() => new Promise<HoldState>(() => undefined))
          : renew(requests),
      );
    const names = Array.from({ length: 2_100 }, (_, n) => `dead${String(n)}`);
    await Promise.all([...names, 'well'].map((name) => locks.acquire(name)));
    await jest.advanceTimersByTimeAsync(60_000);
    expect((await locks.inspect('well'))?.remainingTime).toBeGreaterThan(19_000);
    const lost = events.filter((event) => event.type === 'lost');
    expect(lost).toHaveLength(2_100);
    expect(lost.every(({ reason }) => reason === 'unreachable')).toBe(true);
  });

  it('looks at fixed leases in the same rounds, and prolongs none', async () => {
    const lease = await locks.acquire('a', { leaseTime: 24_000 });
    await jest.advanceTimersByTimeAsync(7_999);
    expect(store.calls.renew).toBe(0);
    await jest.advanceTimersByTimeAsync(2);
    expect(store.calls.renew).toBe(1);
    await jest.advanceTimersByTimeAsync(15_000);
    expect(store.calls.renew).toBe(2);
    expect((await locks.inspect('a'))?.remainingTime).toBeLessThan(1_000);
    await jest.advanceTimersByTimeAsync(1_000);
    expect(lease.held).toBe(false);
    expect((lease.signal.reason as LockLostError).reason).toBe('expired');
  });

  it('takes a look that gets no answer for nothing: no news, and the lease ends as it would have', async () => {
    store.onRenew = unreachable;
    const lease = await locks.acquire('a', { leaseTime: 24_000 });
    await jest.advanceTimersByTimeAsync(17_000);
    expect(store.calls.renew).toBe(2);
    expect(await locks.health()).toMatchObject({ renewalStuck: false, renewalHeadroom: undefined });
    await jest.advanceTimersByTimeAsync(7_000);
    expect((lease.signal.reason as LockLostError).reason).toBe('expired');
    expect(events.filter((event) => event.type === 'renewal-failed')).toEqual([]);
  });

  it('announces the loss at the deadline when no renewal comes through', async () => {
    store.onRenew = unreachable;
    const lease = await locks.acquire('a');
    const { signal } = lease;
    await jest.advanceTimersByTimeAsync(29_690);
    expect(signal.aborted).toBe(false);
    await jest.advanceTimersByTimeAsync(10);
    expect(signal.aborted).toBe(true);
    expect(lease.held).toBe(false);
    expect((signal.reason as LockLostError).reason).toBe('unreachable');
    expect(events).toContainEqual(expect.objectContaining({ type: 'lost', reason: 'unreachable' }));
    const { renew } = store.calls;
    await jest.advanceTimersByTimeAsync(60_000);
    expect(store.calls.renew).toBe(renew);
  });

  it('does not take a renewal that was answered after the deadline for a lease, and frees the lock', async () => {
    const answer = deferred();
    store.onRenew = () => answer.promise;
    const lease = await locks.acquire('a');
    await jest.advanceTimersByTimeAsync(29_700);
    store.released.length = 0;
    answer.resolve();
    await jest.advanceTimersByTimeAsync(0);
    expect(lease.held).toBe(false);
  });

  it('counts the renewed lease from the sending of the request, not from the reply', async () => {
    store.onRenew = () => new Promise((resolve) => setTimeout(resolve, 5_000));
    const lease = await locks.acquire('a');
    await jest.advanceTimersByTimeAsync(15_001);
    expect(lease.remainingTime()).toBeLessThan(25_000);
    expect(lease.remainingTime()).toBeGreaterThan(24_000);
  });

  it('leaves no timer when the last lease is released', async () => {
    const leases = await Promise.all([
      locks.acquire('a'),
      locks.acquire('b'),
      locks.acquire('c', { leaseTime: 9_000 }),
    ]);
    expect(jest.getTimerCount()).toBeGreaterThan(0);
    for (const lease of leases) await lease.release();
    expect(jest.getTimerCount()).toBe(0);
  });

  it('never extends a lease beyond maxHoldTime, in the store either', async () => {
    const bounded = new LockService({ store, leaseTime: 30_000, maxHoldTime: 45_000 });
    const lease = await bounded.acquire('b');
    await jest.advanceTimersByTimeAsync(44_990);
    expect(lease.held).toBe(true);
    expect((await bounded.inspect('b'))?.remainingTime).toBeLessThan(1_000);
    await jest.advanceTimersByTimeAsync(20);
    expect((lease.signal.reason as LockLostError).reason).toBe('max-hold');
    await bounded.onApplicationShutdown();
  });

  it('counts maxHoldTime anew after a hand-off', async () => {
    const bounded = new LockService({ store, leaseTime: 30_000, maxHoldTime: 20_000 });
    const first = await bounded.acquire('b');
    const waiting = bounded.acquire('b');
    await jest.advanceTimersByTimeAsync(900);
    await first.release();
    const second = await waiting;
    expect(second.owner).toBe(first.owner);
    await jest.advanceTimersByTimeAsync(19_500);
    expect(second.held).toBe(true);
    await jest.advanceTimersByTimeAsync(600);
    expect((second.signal.reason as LockLostError).reason).toBe('max-hold');
    await bounded.onApplicationShutdown();
  });
});
