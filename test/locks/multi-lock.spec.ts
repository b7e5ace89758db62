import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { getEventListeners } from 'node:events';
import {
  isLockLostError,
  type Lease,
  type Lock,
  type LockEvent,
  LockService,
  LockUnavailableError,
} from '../../lib/index.js';
import { until } from '../scenarios/until.js';
import { deferred } from '../doubles/deferred.js';
import { ScriptedStore } from '../doubles/scripted-store.js';

let store: ScriptedStore;
let locks: LockService;
/** Another process, as the store sees it. */
let others: LockService;
let events: LockEvent[];

beforeEach(() => {
  store = new ScriptedStore();
  locks = new LockService({ store });
  others = new LockService({ store });
  events = [];
  locks.events$.subscribe((event) => events.push(event));
});

afterEach(async () => {
  await locks.onApplicationShutdown();
  await others.onApplicationShutdown();
});

describe('a multi-lock', () => {
  it('holds all its names at once, each under its own token, in one lease', async () => {
    const lease = await locks.acquire(['b', 'a', 'b']);
    expect(locks.leases().map((held: Lease) => held.name)).toEqual(['a', 'b']);
    expect(await locks.tryAcquire('a')).toBeNull();
    expect(await locks.tryAcquire('b')).toBeNull();
    await lease.release();
    expect(lease.held).toBe(false);
    expect(locks.leases()).toEqual([]);
    expect(await locks.inspect('a')).toBeNull();
  });

  it('leaves no listener on the lease of an enclosing scope, read before its release or after', async () => {
    await locks.using('a', async (outer) => {
      const read = (lease: Lease) => [lease.signal, lease.releaseRequested];
      for (const isReadBefore of [true, false]) {
        const inner = await locks.acquire(['a', 'b']);
        if (isReadBefore) read(inner);
        await inner.release();
        read(inner);
        for (const signal of read(outer)) expect(getEventListeners(signal, 'abort')).toEqual([]);
      }
    });
  });

  it('re-enters per member', async () => {
    await locks.using('a', async () => {
      await locks.using(['a', 'b'], () => {
        expect(locks.getLock('a').holdCount()).toBe(2);
        expect(locks.getLock('b').holdCount()).toBe(1);
        expect(locks.getMultiLock([locks.getLock('a'), locks.getLock('b')]).isHeld()).toBe(true);
      });
      expect(locks.getLock('a').holdCount()).toBe(1);
    });
  });

  it('has a fencing token per member, of which its own is the greatest', async () => {
    const lease = await locks.acquire(['a', 'b']);
    const { fencingTokens, fencingToken } = lease;
    expect([...fencingTokens.keys()]).toEqual(['a', 'b']);
    expect(fencingToken).toBe(Math.max(...fencingTokens.values()));
    await lease.release();
    const single = await locks.acquire('a');
    expect([...single.fencingTokens]).toEqual([['a', single.fencingToken]]);
    expect(single.fencingToken).toBeGreaterThan(fencingTokens.get('a')!);
    await single.release();
  });

  it('takes plain locks in one step, and never a part of them', async () => {
    const names = Array.from({ length: 50 }, (_, n) => `n${String(n)}`);
    const lease = await locks.acquire(names);
    expect(store.calls.acquire).toBe(0);
    expect(store.calls.acquireAll).toBe(1);
    expect(events.filter((event) => event.type === 'acquired').map((event) => event.name)).toEqual(
      names.toSorted(),
    );
    await lease.release();
    const busy = await others.acquire('n7');
    expect(await locks.tryAcquire(names)).toBeNull();
    expect(store.calls).toMatchObject({ acquireAll: 2, release: 50 }); // nothing partial to be given back
    await busy.release();
  });

  it('is woken by the release of whichever name is in the way (pitfall 46)', async () => {
    const [a, b] = [await others.acquire('a'), await others.acquire('b')];
    const waiting = locks.acquire(['a', 'b'], { waitTime: 5_000 });
    await until(async () => (await locks.inspect('a'))?.waiters.local === 1);
    await a.release();
    await until(async () => (await locks.inspect('b'))?.waiters.local === 1);
    const asked = store.calls.acquireAll;
    await b.release();
    const lease = await waiting;
    expect(lease.held).toBe(true);
    expect(store.calls.acquireAll - asked).toBeLessThanOrEqual(2);
    await lease.release();
  });

  it('waits for the name in the way in its queue, before those that come later', async () => {
    const busy = await others.acquire('b');
    const waiting = locks.acquire(['a', 'b'], { waitTime: 5_000 });
    const queued = async () => (await others.inspect('b'))?.queue.length;
    await until(async () => (await queued()) === 1);
    const later = new LockService({ store });
    const order: string[] = [];
    const single = later.using('b', () => void order.push('single'));
    await until(async () => (await queued()) === 2);
    expect(await others.inspect('a')).toBeNull();
    await busy.release();
    const lease = await waiting;
    order.push('both');
    await lease.release();
    await single;
    expect(order).toEqual(['both', 'single']);
    await later.onApplicationShutdown();
  });

  it('gives everything back when it leaves before the rest is there', async () => {
    const a = await others.acquire('a');
    const gone = new AbortController();
    const waiting = locks.acquire(['a', 'b'], { signal: gone.signal });
    await until(async () => (await locks.inspect('a'))?.waiters.local === 1);
    const [asked, answer] = [deferred(), deferred()];
    const acquireAll = store.acquireAll.bind(store);
    store.acquireAll = async (request) => {
      const reply = await acquireAll(request);
      asked.resolve();
      await answer.promise;
      return reply;
    };
    await a.release();
    await asked.promise;
    gone.abort();
    await expect(waiting).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
    answer.resolve();
    await until(async () => (await others.inspect('a')) === null && (await others.inspect('b')) === null);
  });

  it('asks for nothing where callers of its process wait already, and stands behind them', async () => {
    const busy = await others.acquire('b');
    const first = locks.acquire('b');
    const second = locks.acquire(['a', 'b']);
    await until(async () => (await locks.inspect('b'))?.waiters.local === 2);
    expect(store.calls.acquireAll).toBe(0);
    await busy.release();
    await (await first).release();
    await (await second).release();
    expect(store.calls.acquireAll).toBe(1);
  });

  it('asks again at the end of a lease whose holder is gone', async () => {
    await others.acquire('b', { leaseTime: 150 });
    const lease = await locks.acquire(['a', 'b'], { waitTime: 5_000 });
    expect(lease.held).toBe(true);
    await lease.release();
  });

  it('gives up in time, leaves at an abort, and leaves nothing behind', async () => {
    const busy = await others.acquire('b');
    await expect(locks.acquire(['a', 'b'], { waitTime: 30 })).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
    const signal = AbortSignal.timeout(30);
    await expect(locks.acquire(['a', 'b'], { signal })).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
    expect(await locks.inspect('a')).toBeNull();
    expect((await locks.inspect('b'))?.waiters.local).toBe(0);
    await busy.release();
  });

  it('takes back what an unanswered request may have taken, and tries again', async () => {
    let lost = 1;
    store.afterAcquire = () => {
      if (lost-- > 0) throw new LockUnavailableError('a', { cause: new Error('reply lost') });
    };
    const lease = await locks.acquire(['a', 'b'], { waitTime: 60_000 });
    expect(store.released.map(({ name }) => name)).toEqual(['a', 'b']);
    expect(store.released[0]?.owner).not.toBe(lease.owner.split(',')[0]);
    await lease.release();
  });

  it('hands a member over to a waiter of this process, as a single lock does', async () => {
    const lease = await locks.acquire(['a', 'b']);
    const waiting = locks.acquire('a');
    await until(async () => (await locks.inspect('a'))?.waiters.local === 1);
    await lease.release();
    const single = await waiting;
    expect(events.filter((event) => event.type === 'acquired').at(-1)).toMatchObject({ handedOff: true });
    expect(single.fencingToken).toBeGreaterThan(lease.fencingTokens.get('a')!);
    await single.release();
  });

  it('takes only what the scope does not hold yet, in one step', async () => {
    await locks.using('b', async () => {
      store.calls.acquire = 0;
      await locks.using(['a', 'b', 'c'], () => {
        expect(locks.getLock('b').holdCount()).toBe(2);
      });
      expect(store.calls).toMatchObject({ acquire: 0, acquireAll: 1 });
      expect(locks.getLock('b').isHeld()).toBe(true);
      expect(locks.getLock('a').isHeld()).toBe(false);
    });
  });

  it('fails, and keeps nothing, where the scope has lost one of them', async () => {
    await locks.using('b', async () => {
      await locks.forceRelease('b');
      await expect(locks.acquire(['a', 'b'])).rejects.toMatchObject({ code: 'LOCK_LOST' });
      expect(await locks.inspect('a')).toBeNull();
    });
  });

  it('has all of them or none, also where the scope gives one up that it held while the others are waited for', async () => {
    const b = await others.acquire('b');
    let late: Promise<Lease> | undefined;
    await locks.using('a', async () => {
      late = locks.acquire(['a', 'b'], { waitTime: 60_000 });
      await until(async () => (await locks.inspect('b'))?.waiters.local === 1);
    });
    const a = await others.acquire('a');
    await b.release();
    // It waits for "a" now, and keeps "b" from no other.
    await until(async () => (await locks.inspect('a'))?.waiters.local === 1);
    await (await locks.acquire('b')).release();
    await a.release();
    const lease = await late!;
    expect([...lease.fencingTokens.keys()]).toEqual(['a', 'b']);
    await lease.release();
  });

  it('may hold locks of any kind, both sides of a read-write lock, and another multi-lock', async () => {
    const doc = locks.getReadWriteLock('doc');
    const pair = locks.getMultiLock([locks.getLock('a'), locks.getLock('b')]);
    const lock = locks.getMultiLock([
      locks.getFairLock('fair'),
      doc.read,
      locks.getSemaphore('pool', 2),
      pair,
      locks.getLock('b'),
    ]);
    await lock.using(async (lease) => {
      expect([...lease.fencingTokens.keys()].toSorted()).toEqual(['a', 'b', 'doc', 'fair', 'pool']);
      expect(locks.getLock('b').holdCount()).toBe(1);
      expect(await others.getFairLock('fair').tryAcquire()).toBeNull();
      expect(await others.getReadWriteLock('doc').write.tryAcquire()).toBeNull();
    });
    for (const name of ['a', 'b', 'doc', 'fair', 'pool']) expect(await locks.inspect(name)).toBeNull();
    const both = locks.getMultiLock([doc.write, doc.read]);
    const lease = await both.acquire({ waitTime: 0 });
    expect((await locks.inspect('doc'))?.holders).toHaveLength(2);
    expect(await doc.read.forceRelease()).toBe(true);
    expect(await locks.inspect('doc')).toMatchObject({ holders: [{ mode: 'exclusive' }] });
    expect([doc.read.isHeld(), doc.write.isHeld(), lease.held]).toEqual([false, false, false]);
    await lease.release();
    expect(await locks.inspect('doc')).toBeNull();
  });

  it('gives the others back when one of another kind is busy, and waits for that one', async () => {
    const fair = await others.getFairLock('fair').acquire();
    const lock = locks.getMultiLock([locks.getLock('a'), locks.getFairLock('fair')]);
    expect(await lock.tryAcquire()).toBeNull();
    // However long it may wait, it is there when that one is free.
    const waiting = lock.acquire({ waitTime: 3_600_000 });
    await until(async () => (await others.inspect('fair'))?.queue.length === 1);
    await until(async () => (await locks.inspect('a')) === null);
    await fair.release();
    const lease = await waiting;
    expect(lease.held).toBe(true);
    await lease.release();
  });

  it('has no lease on a lock that was taken away while it asked for another one', async () => {
    const acquire = store.acquire.bind(store);
    let isTaken = false;
    store.acquire = async (request) => {
      const reply = await acquire(request);
      if (request.name === 'fair' && !isTaken) isTaken = await locks.forceRelease('a');
      return reply;
    };
    const lock = locks.getMultiLock([locks.getLock('a'), locks.getFairLock('fair')]);
    const lease = await lock.acquire({ waitTime: 5_000 });
    expect([isTaken, lease.held, await locks.getLock('a').isLocked()]).toEqual([true, true, true]);
    await lease.release();
  });

  it('does not wait where waiting is no use, whichever member says so', async () => {
    const pool = await others.getSemaphore('pool', 2).acquire();
    const lock = locks.getMultiLock([locks.getLock('a'), locks.getFairLock('pool')]);
    await expect(lock.acquire({ waitTime: Infinity })).rejects.toMatchObject({ code: 'LOCK_KIND_MISMATCH' });
    expect(await locks.inspect('a')).toBeNull();
    await pool.release();
  });

  it('takes its members in the order of their names, whichever service they are of', () => {
    const across = (first: string, second: string) =>
      locks.getMultiLock([locks.getLock(first), others.getLock(second)]).name;
    expect([across('a', 'b'), across('b', 'a')]).toEqual(['a,b', 'a,b']);
  });

  it('refuses a semaphore that is given twice, in one size or in two, also within another multi-lock', () => {
    const pool = locks.getSemaphore('pool', 3);
    const pair = locks.getMultiLock([pool, locks.getLock('a')]);
    const refused = (members: Lock[], message: string) => {
      let error: unknown;
      try {
        locks.getMultiLock(members);
      } catch (thrown) {
        error = thrown;
      }
      expect(error).toMatchObject({ code: 'LOCK_CONFIG', option: 'locks', key: 'pool' });
      expect((error as Error).message).toContain(message);
    };
    refused([pool, pool], 'takes one permit of a semaphore, and "pool" is given twice');
    refused(
      [pair, locks.getSemaphore('pool', 3)],
      'takes one permit of a semaphore, and "pool" is given twice',
    );
    refused([pool, locks.getSemaphore('pool', 2)], '"pool" is given with 3 and with 2 permits');
    // Of two services it is two semaphores, and any other lock may be named twice.
    locks.getMultiLock([pool, others.getSemaphore('pool', 3), locks.getLock('a'), locks.getLock('a')]);
  });

  it('is not held by a service that has closed in the moment of the grant', async () => {
    for (let moments = 0; moments < 20; moments++) {
      const service = new LockService({ store });
      const acquired = service.acquire(['a', 'b']).catch(() => undefined);
      for (let moment = 0; moment < moments; moment++) await Promise.resolve();
      await service.onApplicationShutdown();
      expect((await acquired)?.held ?? false).toBe(false);
      expect(service.leases()).toEqual([]);
      expect(await Promise.all([store.inspect('a'), store.inspect('b')])).toEqual([null, null]);
    }
  });
});

describe('a multi-lock as its members are', () => {
  it('is locked while one is, for as long as the last, and free by force where one was taken', async () => {
    const multi = locks.getMultiLock(['a', 'b', 'c'].map((name) => locks.getLock(name)));
    expect([await multi.isLocked(), await multi.remainingTime(), await multi.forceRelease()]).toEqual([
      false,
      0,
      false,
    ]);
    await others.acquire('a', { leaseTime: 20_000 });
    await others.acquire('c', { leaseTime: 60_000 });
    expect(await multi.isLocked()).toBe(true);
    const left = await multi.remainingTime();
    expect(left).toBeGreaterThan(50_000);
    expect(left).toBeLessThanOrEqual(60_000);
    expect([await multi.forceRelease(), await multi.isLocked()]).toEqual([true, false]);
    await expect(multi.forceRelease({ reason: '' })).rejects.toMatchObject({ code: 'LOCK_CONFIG' });
  });

  it('is entered as often as the member that is entered least', async () => {
    const multi = locks.getMultiLock([locks.getLock('a'), locks.getLock('b')]);
    await locks.using('a', async () => {
      expect([multi.holdCount(), multi.isHeld()]).toEqual([0, false]);
      await multi.using(async () => {
        expect([multi.holdCount(), locks.getLock('a').holdCount()]).toEqual([1, 2]);
        await multi.using(() => {
          expect(multi.holdCount()).toBe(2);
        });
      });
    });
  });

  it.each([[[]], [[null]], [[{}]], [[undefined]], [[() => 1]], ['a']])('is not made of %p', (given) => {
    expect(() => locks.getMultiLock(given as never)).toThrow(
      expect.objectContaining({ code: 'LOCK_CONFIG' }),
    );
  });

  it('has a lease that is as long as its first member, and ends where one ends', async () => {
    const group = await locks.acquire(['a', 'b', 'c'], { leaseTime: 20_000 });
    const owners = await Promise.all(
      ['a', 'b', 'c'].map(async (name) => (await locks.inspect(name))?.holders[0]?.owner),
    );
    expect(group.owner).toBe(owners.join(','));
    expect(group.fencingToken).toBe(Math.max(...group.fencingTokens.values()));
    expect(group.remainingTime()).toBeLessThanOrEqual(20_000);
    expect(group.remainingTime()).toBeGreaterThan(15_000);
    const grants = locks.leases().map(({ acquiredAt }) => acquiredAt.getTime());
    expect(group.acquiredAt.getTime()).toBe(Math.max(...grants));
    const { releaseRequested, signal } = group;
    await locks.requestRelease('b', { reason: 'maintenance' });
    expect((releaseRequested.reason as Error).message).toContain('maintenance');
    expect([group.held, signal.aborted]).toEqual([true, false]);
    expect(() => {
      group.assertHeld();
    }).not.toThrow();
    await locks.forceRelease('c');
    expect([group.held, group.remainingTime(), isLockLostError(signal.reason)]).toEqual([false, 0, true]);
    expect(() => {
      group.assertHeld();
    }).toThrow(expect.objectContaining({ code: 'LOCK_LOST', key: 'c' }));
    await expect(group.extend(30_000)).rejects.toMatchObject({ code: 'LOCK_LOST' });
    await group.release();
    expect([await locks.inspect('a'), await locks.inspect('b')]).toEqual([null, null]);
  });
});
