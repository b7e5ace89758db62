import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { LockService } from '../../lib/index.js';
import { ScriptedStore } from '../doubles/scripted-store.js';
import { useVirtualTime } from '../support/virtual-time.js';

useVirtualTime();

const refused = {
  code: 'LOCK_CONFIG',
  option: 'maxHoldTime',
  message: expect.stringMatching(/^maxHoldTime: leaves this hold \d+ ms, .* for 60000 ms$/),
};

let store: ScriptedStore;
let locks: LockService;

beforeEach(() => {
  store = new ScriptedStore();
  locks = new LockService({ store, maxHoldTime: 40_000 });
});

afterEach(async () => {
  await locks.onApplicationShutdown();
});

/** Runs it, and tells what it has sent meanwhile. */
const sentBy = async (run: () => Promise<unknown>) => {
  const before = { ...store.calls };
  await run();
  return Object.entries(store.calls).flatMap(([command, count]) =>
    count > before[command as keyof typeof before] ? [command] : [],
  );
};

describe('an extension beyond maxHoldTime', () => {
  it('is refused by name, sends nothing, and leaves the lease as it was', async () => {
    const lease = await locks.acquire('a');
    expect(await sentBy(() => expect(lease.extend(60_000)).rejects.toMatchObject(refused))).toEqual([]);
    expect(lease.held).toBe(true);
    expect(await locks.getLock('a').remainingTime()).toBeLessThanOrEqual(30_000);
    await lease.extend(35_000);
    expect(lease.remainingTime()).toBeGreaterThan(33_000);
  });

  it('is refused for all of several locks before one is extended', async () => {
    const free = new LockService({ store });
    const lease = await free
      .getMultiLock([free.getFairLock('a'), free.getLock('b'), locks.getLock('c')])
      .acquire();
    expect(await sentBy(() => expect(lease.extend(60_000)).rejects.toMatchObject(refused))).toEqual([]);
    await lease.extend(35_000);
    await lease.release();
    await free.onApplicationShutdown();
  });

  it('is none of a fixed lease, which has an end of its own', async () => {
    const lease = await locks.acquire('a', { leaseTime: 1_000 });
    await lease.extend(60_000);
    expect(lease.remainingTime()).toBeGreaterThan(50_000);
  });
});

describe('a re-entry beyond maxHoldTime', () => {
  it('is refused where its lease is fixed, and changes nothing', async () => {
    const lock = locks.getLock('a');
    await lock.using(async (outer) => {
      for (const enter of [
        () => lock.acquire({ leaseTime: 60_000 }),
        () => lock.tryAcquire({ leaseTime: 60_000 }),
        () => lock.using({ leaseTime: 60_000 }, () => 1),
        // The other one is free, and is not taken.
        () => locks.acquire(['a', 'b'], { leaseTime: 60_000 }),
      ]) {
        expect(await sentBy(() => expect(enter()).rejects.toMatchObject(refused))).toEqual([]);
      }
      expect(lock.holdCount()).toBe(1);
      expect(outer.held).toBe(true);
      await (await lock.acquire({ leaseTime: 35_000 })).release();
    });
    expect(await lock.isLocked()).toBe(false);
  });

  it('lasts as long as maxHoldTime lets it where its lease is renewed', async () => {
    await locks.using('a', async (outer) => {
      const inner = await locks.acquire('a', { leaseTime: 60_000, renew: true });
      expect(inner.remainingTime()).toBeGreaterThan(38_000);
      expect(outer.remainingTime()).toBeLessThanOrEqual(40_000);
      expect(await locks.getLock('a').remainingTime()).toBeLessThan(41_000);
      await inner.release();
    });
  });
});
