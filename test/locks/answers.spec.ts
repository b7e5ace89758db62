import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { LockAbortedError, LockService, LockUnavailableError } from '../../lib/index.js';
import { deferred } from '../doubles/deferred.js';
import { ScriptedStore } from '../doubles/scripted-store.js';
import { pass, until, useVirtualTime } from '../support/virtual-time.js';

useVirtualTime();

let store: ScriptedStore;
let locks: LockService;

beforeEach(() => {
  store = new ScriptedStore();
  locks = new LockService({ store });
});

afterEach(async () => {
  await locks.close();
});

/** Fails the next renewals, as a reset connection does. */
const failRenewals = (times: number, error = new LockUnavailableError('a')) => {
  store.onRenew = () => {
    if (times-- > 0) throw error;
  };
};

describe('an extension', () => {
  it('that got no answer is asked for once more', async () => {
    const lease = await locks.acquire('a', { leaseTime: 5_000 });
    failRenewals(1);
    await lease.extend(60_000);
    expect(lease.remainingTime()).toBeGreaterThan(50_000);
    expect(store.calls.renew).toBe(2);
  });

  it('that got none again fails, and the lease is as it was', async () => {
    const lease = await locks.acquire('a', { leaseTime: 5_000 });
    failRenewals(2);
    await expect(lease.extend(60_000)).rejects.toBeInstanceOf(LockUnavailableError);
    expect(lease.remainingTime()).toBeLessThan(5_000);
    expect(lease.held).toBe(true);
    expect(store.calls.renew).toBe(2);
  });

  it.each(['a', ['a', 'b']])(
    'that a nested call of %p needs is waited for within its wait time',
    async (name) => {
      store.onRenew = () => new Promise(() => undefined);
      await locks.using(name, async (outer) => {
        const began = performance.now();
        const nested = locks
          .acquire(name, { leaseTime: 60_000, waitTime: 100 })
          .catch((error: unknown) => error);
        expect(await Promise.race([nested, pass(3_000, 'no answer')])).toMatchObject({
          code: 'LOCK_UNAVAILABLE',
        });
        expect(performance.now() - began).toBeLessThan(1_000);
        expect(outer.held).toBe(true);
        expect(locks.getLock('a').holdCount()).toBe(1);
      });
      expect(await locks.inspect('a')).toBeNull();
    },
  );
});

describe('a signal', () => {
  const gone = () => AbortSignal.abort(new Error('gone'));

  it('ends the wait for an extension, which takes effect all the same', async () => {
    const lease = await locks.acquire('a', { leaseTime: 5_000 });
    const reply = deferred();
    store.onRenew = () => reply.promise;
    const abort = new AbortController();
    const extended = lease.extend(60_000, { signal: abort.signal });
    abort.abort(new Error('gone'));
    await expect(extended).rejects.toMatchObject({ code: 'LOCK_ABORTED', cause: new Error('gone') });
    expect(lease.held).toBe(true);
    reply.resolve();
    await until(() => lease.remainingTime() > 50_000);
  });

  it('that has aborted before sends no extension', async () => {
    const lease = await locks.acquire('a', { leaseTime: 5_000 });
    await expect(lease.extend(60_000, { signal: gone() })).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
    expect(store.calls.renew).toBe(0);
    const both = await locks.acquire(['b', 'c']);
    await expect(both.extend('1m', { signal: gone() })).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
    expect(store.calls.renew).toBe(0);
  });

  it.each([
    ['a lease', 'a'],
    ['a lease of several', ['a', 'b']],
  ])('ends the wait for the release of %s, which goes on', async (_, name) => {
    const lease = await locks.acquire(name);
    const reply = deferred();
    store.onRelease = () => reply.promise;
    const released = lease.release({ signal: gone() });
    await expect(released).rejects.toBeInstanceOf(LockAbortedError);
    expect(lease.held).toBe(false);
    reply.resolve();
    await lease.release();
    expect(await locks.inspect('a')).toBeNull();
  });

  it('ends an inspection', async () => {
    const reply = deferred();
    const inspect = store.inspect.bind(store);
    store.inspect = (name) => reply.promise.then(() => inspect(name));
    const abort = new AbortController();
    const inspected = locks.inspect('a', { signal: abort.signal });
    abort.abort();
    await expect(inspected).rejects.toMatchObject({ code: 'LOCK_ABORTED', key: 'a' });
    await expect(locks.inspect('a', { signal: gone() })).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
    reply.resolve();
    expect(await locks.inspect('a', { signal: new AbortController().signal })).toBeNull();
  });

  it('that is none, and other options, are refused', async () => {
    const lease = await locks.acquire('a');
    const wrong = [{ signal: 5 }, { sgnal: new AbortController().signal }, 5];
    for (const options of wrong as never[]) {
      await expect(lease.extend(60_000, options)).rejects.toMatchObject({ code: 'LOCK_CONFIG' });
      await expect(locks.inspect('a', options)).rejects.toMatchObject({ code: 'LOCK_CONFIG' });
      // A lock is released in any case.
      const other = await locks.acquire('b');
      await expect(other.release(options)).rejects.toMatchObject({ code: 'LOCK_CONFIG' });
      expect(await locks.inspect('b')).toBeNull();
    }
    expect(store.calls.renew).toBe(0);
  });
});

describe('a nested lease that is longer than a fixed one', () => {
  it('prolongs it for its own time only', async () => {
    const losses: unknown[] = [];
    locks.events$.subscribe((event) => {
      if (event.type === 'lost') losses.push(event.reason);
    });
    await locks.using('a', { leaseTime: 300 }, async (outer) => {
      const end = performance.now() + outer.remainingTime();
      await locks.using('a', { leaseTime: 60_000 }, (nested) => {
        expect(nested.remainingTime()).toBeGreaterThan(50_000);
        expect(outer.remainingTime()).toBeGreaterThan(50_000);
      });
      expect(performance.now() + outer.remainingTime()).toBeLessThan(end + 5);
      // Free for others when the outer one is over, although the store has been asked to keep it for longer.
      const next = await locks.runInScope(() => locks.acquire('a', { waitTime: 10_000 }));
      expect(losses).toEqual(['expired']);
      await next.release();
    });
  });

  it('lasts where the outer one is released first', async () => {
    await locks.runInScope(async () => {
      const outer = await locks.acquire('a', { leaseTime: 300 });
      const nested = await locks.acquire('a', { leaseTime: 60_000 });
      await outer.release();
      expect(nested.remainingTime()).toBeGreaterThan(50_000);
      await nested.release();
    });
  });

  it('leaves an outer one that has been extended itself for longer', async () => {
    await locks.using('a', { leaseTime: 300 }, async (outer) => {
      await locks.using('a', { leaseTime: 40_000 }, () => outer.extend(60_000));
      expect(outer.remainingTime()).toBeGreaterThan(50_000);
    });
  });

  it('keeps the lock for its minHoldTime', async () => {
    await locks.runInScope(async () => {
      await locks.acquire('a', { leaseTime: 300 });
      const nested = await locks.acquire('a', { leaseTime: 60_000, minHoldTime: 50_000 });
      await nested.release();
      await pass(400);
      expect(await locks.inspect('a')).not.toBeNull();
    });
  });
});
