import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  isLockLostError,
  LockAbortedError,
  type LockEvent,
  LockLostError,
  LockService,
  LockTimeoutError,
  MemoryLockStore,
} from '../../lib/index.js';
import { RESERVED } from '../../lib/store/index.js';
import { pass, standStill, useVirtualTime } from '../support/virtual-time.js';

useVirtualTime();

let locks: LockService;
let events: LockEvent[];

beforeEach(() => {
  locks = new LockService({ store: 'memory' });
  events = [];
  locks.events$.subscribe((event) => events.push(event));
});

afterEach(async () => {
  await locks.onApplicationShutdown();
});

describe('a lease', () => {
  it('has a name, an owner of its own, a token, and most of its time left', async () => {
    const one = await locks.acquire('a');
    const two = await locks.acquire('b');
    expect(one.name).toBe('a');
    expect(one.owner).toMatch(/^[\da-f-]{36}:\d+$/);
    expect(two.owner).not.toBe(one.owner);
    expect(Number.isSafeInteger(one.fencingToken)).toBe(true);
    expect(one.held).toBe(true);
    expect(one.remainingTime()).toBeGreaterThan(25_000);
    // 1 % and 2 ms are not promised.
    expect(one.remainingTime()).toBeLessThanOrEqual(29_698);
    expect(() => {
      one.assertHeld();
    }).not.toThrow();
  });

  it('that did not come names in its error the line which has waited for it', async () => {
    const placeOrder = async () => await locks.acquire('a', { waitTime: 20 });
    await locks.acquire('a');
    await expect(placeOrder()).rejects.toMatchObject({
      code: 'LOCK_TIMEOUT',
      stack: expect.stringContaining('placeOrder'),
    });
  });

  it('is listed while it is held', async () => {
    const one = await locks.acquire('a');
    const two = await locks.acquire('b');
    expect(locks.leases().map((lease) => lease.name)).toEqual(['a', 'b']);
    await one.release();
    expect(locks.leases()).toEqual([two]);
  });

  it('is over after its release, which may be repeated', async () => {
    const [lease, watched] = [await locks.acquire('a'), await locks.acquire('b')];
    const { signal } = watched;
    await watched.release();
    await Promise.all([lease.release(), lease.release()]);
    await lease.release();
    expect(lease.held).toBe(false);
    expect(lease.remainingTime()).toBe(0);
    expect(lease.signal.aborted).toBe(false);
    expect(signal.aborted).toBe(false);
    expect(() => {
      lease.assertHeld();
    }).toThrow(expect.objectContaining({ code: 'LOCK_LOST', reason: 'released' }));
    await expect(lease.extend(1_000)).rejects.toBeInstanceOf(LockLostError);
    expect(events.filter((event) => event.type === 'released')).toHaveLength(2);
  });

  it('ends with its block under `await using`', async () => {
    const lock = locks.getLock('a');
    {
      await using lease = await lock.acquire();
      await using group = await locks.acquire(['b', 'c']);
      expect([lease.held, group.held]).toEqual([true, true]);
      expect(await lock.isLocked()).toBe(true);
    }
    expect(await lock.isLocked()).toBe(false);
    expect(locks.leases()).toEqual([]);
  });

  it('can be extended, and is never shortened by it', async () => {
    const lease = await locks.acquire('a', { leaseTime: 1_000 });
    for (const time of [10_000, 500]) await lease.extend(time);
    expect(lease.remainingTime()).toBeGreaterThan(9_000);
    expect(await locks.getLock('a').remainingTime()).toBeGreaterThan(9_000);
    const late = expect(lease.extend(20_000)).rejects.toMatchObject({
      code: 'LOCK_LOST',
      reason: 'released',
    });
    await lease.release();
    await late;
  });

  it('is lost where its extension finds that the store has forgotten it', async () => {
    const store = new MemoryLockStore();
    await using service = new LockService({ store });
    const lease = await service.acquire('a', { leaseTime: 10_000 });
    const { signal } = lease;
    await store.release({ name: 'a', owner: lease.owner });
    await expect(lease.extend(20_000)).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'deleted' });
    expect(isLockLostError(signal.reason)).toBe(true);
  });

  it('knows that it is over although its timer has not fired', async () => {
    const lease = await locks.acquire('a', { leaseTime: 30 });
    const { signal } = lease;
    expect(signal.aborted).toBe(false);
    standStill(60);
    expect(lease.signal.aborted).toBe(true);
    expect(lease.held).toBe(false);
    expect(lease.remainingTime()).toBe(0);
  });
});

describe('the holds that leases share', () => {
  const told = (type: LockEvent['type']) => events.filter((event) => event.type === type);

  it('keep what was asked of them for a lease that looks later, with the reason of the first request', async () => {
    const lease = await locks.acquire('a');
    await locks.requestRelease('a', { reason: 'first' });
    await locks.requestRelease('a', { reason: 'second' });
    expect(lease.releaseRequested.aborted).toBe(true);
    expect((lease.releaseRequested.reason as Error).message).toContain('first');
    expect(lease.signal.aborted).toBe(false);
    expect(told('release-requested')).toMatchObject([{ reason: 'first' }, { reason: 'second' }]);
    const later = await locks.acquire('b');
    const { releaseRequested } = later;
    expect(releaseRequested.aborted).toBe(false);
    await locks.requestRelease('b', { reason: 'now' });
    expect((releaseRequested.reason as Error).message).toContain('now');
  });

  it('end with the last of three, in whatever order they leave', async () => {
    const lock = locks.getLock('a');
    await lock.using(async (outer) => {
      const [second, third] = [await lock.acquire(), await lock.acquire()];
      expect([lock.holdCount(), lock.isHeld()]).toEqual([3, true]);
      await second.release();
      expect([lock.holdCount(), second.held, outer.held, third.held]).toEqual([2, false, true, true]);
      await outer.release();
      expect([lock.holdCount(), outer.held, third.held]).toEqual([0, false, true]);
      expect(await lock.isLocked()).toBe(true);
      expect(told('released')).toEqual([]);
      await third.release();
      expect(await lock.isLocked()).toBe(false);
    });
    expect(told('released')).toHaveLength(1);
  });
});

describe('using', () => {
  it('returns what the callback returns, with and without options', async () => {
    expect(await locks.using('a', () => 1)).toBe(1);
    expect(await locks.using('a', { waitTime: 0 }, async (lease) => lease.name)).toBe('a');
    expect(await locks.getLock('a').using({}, () => 2)).toBe(2);
    expect(await locks.getLock('a').isLocked()).toBe(false);
  });

  it('passes the callback its own error on, and releases', async () => {
    const failure = new Error('business');
    await expect(
      locks.using('a', () => {
        throw failure;
      }),
    ).rejects.toBe(failure);
    await expect(locks.using('a', () => Promise.reject(failure))).rejects.toBe(failure);
    expect(await locks.getLock('a').isLocked()).toBe(false);
  });

  it('refuses to run without a callback', async () => {
    await expect(locks.using('a', {}, undefined as never)).rejects.toMatchObject({ code: 'LOCK_CONFIG' });
    expect(await locks.getLock('a').isLocked()).toBe(false);
  });
});

describe('tryAcquire and acquire', () => {
  it('is null when busy, LockTimeoutError when waited for', async () => {
    const lease = await locks.acquire('a');
    expect(await locks.tryAcquire('a')).toBeNull();
    expect(await locks.tryAcquire('a', { waitTime: 20 })).toBeNull();
    const error = await locks.acquire('a', { waitTime: 20 }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(LockTimeoutError);
    expect(error).toMatchObject({
      key: 'a',
      holder: lease.owner,
      status: 409,
      statusCode: 409,
      expose: false,
    });
    expect((error as LockTimeoutError).waited).toBeGreaterThanOrEqual(19);
    expect((error as LockTimeoutError).message).toContain(lease.owner);
    expect((error as LockTimeoutError).publicMessage).toBe('The resource is busy, try again later');
  });

  it('stops waiting when the signal fires, and says why', async () => {
    const lease = await locks.acquire('a');
    const controller = new AbortController();
    const waiting = locks.acquire('a', { signal: controller.signal });
    await pass(5);
    controller.abort('changed my mind');
    const error = await waiting.catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(LockAbortedError);
    expect((error as Error).cause).toBe('changed my mind');
    await expect(locks.tryAcquire('b', { signal: controller.signal })).rejects.toMatchObject({
      code: 'LOCK_ABORTED',
    });
    expect(await locks.getLock('b').isLocked()).toBe(false);
    await lease.release();
    expect(await locks.getLock('a').isLocked()).toBe(false);
  });

  it('does not end a lease whose signal fires later', async () => {
    const controller = new AbortController();
    const lease = await locks.acquire('a', { signal: controller.signal });
    controller.abort();
    expect(lease.held).toBe(true);
  });

  it.each(['x'.repeat(1_024), 'ü'.repeat(512)])('takes a name of 1,024 bytes: %#', async (name) => {
    expect((await locks.acquire(name)).name).toBe(name);
  });

  it.each([
    ['', 'LOCK_KEY'],
    ['x'.repeat(1_025), 'LOCK_KEY'],
    ['ü'.repeat(512) + 'a', 'LOCK_KEY'],
    [`a${RESERVED}b`, 'LOCK_KEY'],
    ['\ud800', 'LOCK_KEY'],
    [undefined, 'LOCK_KEY'],
    [42, 'LOCK_KEY'],
    [null, 'LOCK_KEY'],
    [{}, 'LOCK_KEY'],
    [[], 'LOCK_CONFIG'],
    [['a', ''], 'LOCK_KEY'],
  ])('refuses the name %j', async (name, code) => {
    await expect(locks.acquire(name as string)).rejects.toMatchObject({ code });
    await expect(locks.tryAcquire(name as string)).rejects.toMatchObject({ code });
    await expect(locks.using(name as string, () => 1)).rejects.toMatchObject({ code });
  });
});
