import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { LockService, MemoryLockStore } from '../../../lib/index.js';
import { SweptMap } from '../../../lib/stores/memory/swept-map.js';

const QUEUE = { kind: 'fair', mode: 'exclusive', capacity: 1 } as const;

const ask = { ...QUEUE, entry: undefined, ownWriteHold: undefined };

interface Books {
  locks: Map<string, unknown>;
}

it('forgets names that are over and not asked for again, and nothing else', async () => {
  const store = new MemoryLockStore();
  const kept = { name: 'kept', owner: 'me:1', leaseTime: 60_000 };
  await store.acquire(kept);
  await store.acquire({ ...kept, name: 'kept queue', queue: ask });
  for (let n = 0; n < 5_000; n++) {
    const [name, queued] = [`plain ${String(n)}`, `queue ${String(n)}`];
    await store.acquire({ name, owner: 'me:2', leaseTime: 1 });
    await store.acquire({ name: queued, owner: 'me:2', leaseTime: 1_000, queue: ask });
    await store.release({ name: queued, owner: 'me:2', queue: QUEUE });
    await store.acquireAll({ names: [name, 'kept'], owner: 'me:3', leaseTime: 1 });
    if (n % 500 === 0) await sleep(150);
  }
  const { locks } = store as unknown as Books;
  expect(locks.size).toBeLessThanOrEqual(2_000);
  expect((await store.inspect('kept'))?.holders).toHaveLength(1);
  expect((await store.inspect('kept queue'))?.holders).toHaveLength(1);
});

it('tells a live waiter behind a dead one, also where the lock is left to waiters outside of the queue', async () => {
  const store = new MemoryLockStore();
  const told: string[] = [];
  await store.queues.subscribe('live', ({ type }) => void told.push(type));
  const plain = { kind: 'lock', mode: 'exclusive', capacity: 1 } as const;
  const queue = { ...plain, entry: { arrival: undefined }, ownWriteHold: undefined };
  // Chance decides which releases leave the lock to the waiters outside of the queue.
  for (let n = 0; n < 40; n++) {
    const name = `left ${String(n)}`;
    const outsider = await store.subscribeToReleases(name, () => undefined);
    for (const owner of ['a:1', 'dead:1', 'live:1']) {
      await store.acquire({ name, owner, leaseTime: 30_000, queue });
    }
    await store.release({ name, owner: 'a:1', queue: plain });
    await sleep(0);
    expect(told.splice(0)).toHaveLength(1);
    outsider.close();
  }
});

it('reads requests by their fields, also where a class has these as getters', async () => {
  const fields = { name: 'a', names: ['a'], owner: 'a:1', leaseTime: 30_000 };
  // Like the getters of a class, these are not the object's own.
  const request = Object.create(fields) as typeof fields;
  const left = { name: 'a', owner: 'a:2' };
  for (const ask of [
    (store: MemoryLockStore) => store.acquire(request),
    (store: MemoryLockStore) => store.acquireAll(request),
    (store: MemoryLockStore) => store.queues.handOver?.(left, request),
  ]) {
    const store = new MemoryLockStore();
    await ask(store);
    const [holder] = (await store.inspect('a'))?.holders ?? [];
    expect(holder?.owner).toBe('a:1');
    expect(holder?.remainingTime).toBeLessThanOrEqual(30_000);
  }
});

describe('the fencing token', () => {
  afterEach(() => {
    jest.useRealTimers();
  });

  it('that inspect tells does not go back when an earlier holder of a semaphore leaves', async () => {
    const store = new MemoryLockStore();
    const permits = { name: 'permits', queue: { kind: 'semaphore', mode: 'shared', capacity: 2 } } as const;
    const enter = (owner: string) =>
      store.acquire({ ...permits, owner, leaseTime: 30_000, queue: { ...ask, ...permits.queue } });
    await enter('a:1');
    const last = await enter('a:2');
    await store.release({ ...permits, owner: 'a:1' });
    expect((await store.inspect('permits'))?.fencingToken).toBe(last.granted && last.fencingToken);
  });

  it('that inspect tells is the last one of that name, not of all names', async () => {
    const locks = new LockService({ store: new MemoryLockStore() });
    const plain = await locks.acquire('plain');
    const fair = await locks.getFairLock('fair').acquire();
    await locks.acquire('other');
    await locks.getFairLock('other fair').acquire();
    expect((await locks.inspect('plain'))?.fencingToken).toBe(plain.fencingToken);
    expect((await locks.inspect('fair'))?.fencingToken).toBe(fair.fencingToken);
    await locks.onApplicationShutdown();
  });

  it('grows beyond what was handed on before a forced release, though time stands still', async () => {
    jest.useFakeTimers();
    const store = new MemoryLockStore();
    const [locks, administrator] = [new LockService({ store }), new LockService({ store })];
    const tokens: number[] = [];
    const enter = () => locks.using('a', ({ fencingToken }) => void tokens.push(fencingToken));
    await Promise.all([enter(), enter(), enter()]);
    await Promise.all([
      enter(),
      enter(),
      locks.using('a', async ({ fencingToken }) => {
        tokens.push(fencingToken);
        await administrator.forceRelease('a');
      }),
    ]);
    await enter();
    expect(tokens).toHaveLength(7);
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
    await Promise.all([locks.onApplicationShutdown(), administrator.onApplicationShutdown()]);
  });
});

it('transfers no hold that is over', async () => {
  const store = new MemoryLockStore();
  await store.acquire({ name: 'a', owner: 'me:1', leaseTime: 10 });
  // No timer can have taken it away meanwhile.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 15);
  const transfer = { name: 'a', owner: 'me:1', next: 'you:1', leaseTime: 60_000, leastToken: 0 };
  expect(await store.transfer(transfer)).not.toMatchObject({ granted: true });
  expect(await store.inspect('a')).toBeNull();
});

describe('a memory store', () => {
  it('wakes those that listen to releases in turn', async () => {
    const store = new MemoryLockStore();
    const woken: string[] = [];
    const listen = (name: string) => store.subscribeToReleases('a', () => void woken.push(name));
    const [one] = [await listen('one'), await listen('two'), await listen('three')];
    const firsts: (string | undefined)[] = [];
    const releaseOnce = async () => {
      await store.acquire({ name: 'a', owner: 'me:1', leaseTime: 60_000 });
      await store.release({ name: 'a', owner: 'me:1' });
      await sleep(0);
    };
    for (let n = 0; n < 3; n++) {
      await releaseOnce();
      expect(woken).toHaveLength(3);
      firsts.push(woken.splice(0)[0]);
    }
    expect([...firsts].sort()).toEqual(['one', 'three', 'two']);
    one.close();
    await releaseOnce();
    expect(woken.sort()).toEqual(['three', 'two']);
  });

  it('keeps a subscription that follows one of the same client, however often that one is closed', async () => {
    const store = new MemoryLockStore();
    const told: string[] = [];
    const before = await store.queues.subscribe('you', () => void told.push('before'));
    const request = { id: '1', name: 'a', owner: 'you:1', by: 'me', reason: 'maintenance' };
    before.close();
    expect(await store.requestRelease(request)).toBe(false);
    await store.queues.subscribe('you', () => void told.push('after'));
    before.close();
    expect(await store.requestRelease(request)).toBe(true);
    expect(await store.requestRelease({ ...request, owner: 'other:1' })).toBe(false);
    await sleep(0);
    expect(told).toEqual(['after']);
  });

  it('does not call a listener inside of the call that releases', async () => {
    const store = new MemoryLockStore();
    let isReleasing = false;
    const seen: boolean[] = [];
    await store.subscribeToReleases('a', () => void seen.push(isReleasing));
    await store.acquire({ name: 'a', owner: 'me:1', leaseTime: 60_000 });
    isReleasing = true;
    const released = store.release({ name: 'a', owner: 'me:1' });
    isReleasing = false;
    await released;
    await sleep(0);
    expect(seen).toEqual([false]);
  });

  it('has a hold since its first acquisition, whatever follows, and wakes what waits where a lock is kept', async () => {
    jest.useFakeTimers();
    try {
      const store = new MemoryLockStore();
      const mine = { name: 'a', owner: 'me:1', leaseTime: 1_000 };
      const since = async () => (await store.inspect('a'))?.holders[0]?.since;
      await store.acquire(mine);
      const begun = await since();
      jest.advanceTimersByTime(100);
      await store.acquire(mine);
      expect(await since()).toBe(begun);
      let woken = 0;
      await store.subscribeToReleases('a', () => {
        woken++;
      });
      await store.release({ ...mine, keepFor: 300 });
      await Promise.resolve();
      expect([woken, (await store.inspect('a'))?.holders[0]?.remainingTime]).toEqual([1, 300]);
      await store.release(mine);
      expect((await store.acquire({ ...mine, owner: 'you:1' })).granted).toBe(false);
      jest.advanceTimersByTime(300);
      expect((await store.acquire({ ...mine, owner: 'you:1' })).granted).toBe(true);
      expect(await since()).toBe(Number(begun) + 400);
    } finally {
      jest.useRealTimers();
    }
  });
});

it('A map that forgets what is over stays small, and looks through its values rarely', () => {
  const MANY = 50_000;
  let looks = 0;
  const map = new SweptMap<number>((value) => {
    looks++;
    return value % 10 > 0;
  });
  for (let value = 0; value < MANY; value++) map.set(String(value), value);
  expect(map.size).toBeLessThan((2 * MANY) / 10);
  expect([...map.values()].filter((value) => value % 10 === 0)).toHaveLength(MANY / 10);
  expect(looks).toBeLessThan(4 * MANY);
});

it('A map that forgets what is over keeps a few values, over or not, without a look', () => {
  const map = new SweptMap<number>(() => {
    throw new Error('looked');
  });
  for (let value = 0; value < 1_000; value++) map.set(String(value), value);
  expect(map.size).toBe(1_000);
});
