import assert from './assert.js';
import { isLockLostError, isLockTimeoutError } from '../../api/error-guards.js';
import { LockService } from '../../module/lock-service.js';
import type { Lock } from '../../api/lock.js';
import { sleep, type Stage } from './stage.js';
import { words } from '../test-framework.js';

/** The store under the service that applications use. */
export function describeServices(stage: Stage, queues: boolean): void {
  const { it } = words();
  const withServices = async (body: (one: LockService, two: LockService) => Promise<void>): Promise<void> => {
    const one = new LockService({ store: stage.open(), leaseTime: 1_000 });
    const two = new LockService({ store: stage.open(), leaseTime: 1_000 });
    try {
      await body(one, two);
    } finally {
      await one.onApplicationShutdown();
      await two.onApplicationShutdown();
    }
  };

  const kinds: [string, (locks: LockService, name: string) => Lock, number][] = [
    ['plain', (locks, name) => locks.getLock(name), 1],
    ['fair', (locks, name) => locks.getFairLock(name), 1],
    ['write', (locks, name) => locks.getReadWriteLock(name).write, 1],
    ['read', (locks, name) => locks.getReadWriteLock(name).read, Infinity],
    ['semaphore', (locks, name) => locks.getSemaphore(name, 3), 3],
  ];
  for (const [kind, lockOf, allowed] of queues ? kinds : kinds.slice(0, 1)) {
    it(`grants as many leases at once as a ${kind} lock allows, renews them, and leaves nothing`, () =>
      withServices(async (one, two) => {
        const name = stage.freshName();
        let inside = 0;
        let most = 0;
        const work = async (time: number) => {
          most = Math.max(most, ++inside);
          await sleep(time);
          inside--;
        };
        await Promise.all(
          Array.from({ length: 20 }, (_, n) => lockOf(n % 2 === 0 ? one : two, name).using(() => work(2))),
        );
        assert.ok(most <= allowed, `${String(most)} inside`);
        if (allowed > 1) assert.ok(most > 1, 'was never shared');
        // Longer than the lease of 1 s, so renewals keep the lock held.
        await lockOf(one, name).using(async (lease) => {
          await sleep(1_500);
          assert.equal(lease.held, true);
        });
        assert.equal(await one.inspect(name), null);
      }));
  }

  it('excludes, waits and hands over', () =>
    withServices(async (one, two) => {
      const name = stage.freshName();
      let inside = 0;
      let most = 0;
      const work = async () => {
        most = Math.max(most, ++inside);
        await sleep(1);
        inside--;
      };
      await Promise.all(Array.from({ length: 40 }, (_, n) => (n % 2 === 0 ? one : two).using(name, work)));
      assert.equal(most, 1);
      assert.equal(await one.inspect(name), null);
    }));

  it('renews a lease for as long as it is held', () =>
    withServices(async (one, two) => {
      const name = stage.freshName();
      const lease = await one.acquire(name);
      await sleep(2_500);
      assert.equal(lease.held, true);
      assert.equal(await two.tryAcquire(name), null);
      await lease.release();
    }));

  it('ends a fixed lease at its time, tells the holder, and grants the lock to the next waiter', () =>
    withServices(async (one, two) => {
      const name = stage.freshName();
      const lease = await one.acquire(name, { leaseTime: 200 });
      const next = await two.acquire(name);
      assert.equal(lease.held, false);
      assert.ok(isLockLostError(lease.signal.reason));
      assert.ok(next.fencingToken > lease.fencingToken);
      await lease.release();
      assert.equal(next.held, true);
      assert.equal(await one.tryAcquire(name), null);
      await next.release();
    }));

  it('gives up when the wait time is over', () =>
    withServices(async (one, two) => {
      const name = stage.freshName();
      const lease = await one.acquire(name);
      // The wait is for the lock: the connection is there.
      assert.equal(await two.tryAcquire(name), null);
      await assert.rejects(two.acquire(name, { waitTime: 500 }), isLockTimeoutError);
      await lease.release();
    }));

  it('re-enters in one scope, with one token, and releases with the last hold', () =>
    withServices(async (one, two) => {
      const name = stage.freshName();
      const lock = one.getLock(name);
      await one.using(name, async (outer) => {
        await one.using(name, (inner) => {
          assert.equal(inner.fencingToken, outer.fencingToken);
          assert.equal(lock.holdCount(), 2);
        });
        assert.equal(lock.holdCount(), 1);
        assert.equal(await two.tryAcquire(name), null);
      });
      assert.equal(await lock.isLocked(), false);
    }));
}
