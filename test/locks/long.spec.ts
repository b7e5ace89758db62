import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type LockEvent, LockService, MemoryLockStore } from '../../lib/index.js';
import { ScriptedStore } from '../doubles/scripted-store.js';
import { pass, until, useVirtualTime } from '../support/virtual-time.js';
import { loggerOfEach } from '../support/logger.js';

describe('Long waits and holds', () => {
  useVirtualTime();

  let store: MemoryLockStore;
  let locks: LockService;
  let other: LockService;
  let events: LockEvent[];
  const logger = loggerOfEach();

  const of = <T extends LockEvent['type']>(type: T) =>
    events.filter((event): event is Extract<LockEvent, { type: T }> => event.type === type);

  beforeEach(() => {
    store = new MemoryLockStore();
    locks = new LockService({ store, longWaitTime: 30, longHoldTime: 30 });
    other = new LockService({ store, label: 'the other' });
    events = [];
    locks.events$.subscribe((event) => events.push(event));
  });

  afterEach(async () => {
    await locks.close();
    await other.close();
  });

  const waitingFor = async (name: string) => (await locks.inspect(name))?.waiters.local;

  const warnings = () => logger.lines('warn');

  describe('a wait beyond longWaitTime', () => {
    it('is an event and a log line, once, that name the holder', async () => {
      const { owner } = await other.acquire('order:1');
      const waiting = locks.acquire('order:1', { label: 'order', waitTime: 90 });
      await expect(waiting).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
      const holder = { holder: owner, holderLabel: 'the other' };
      const long = { type: 'waiting-long', name: 'order:1', label: 'order', waited: expect.any(Number) };
      expect(of('waiting-long')).toEqual([{ ...long, ...holder }]);
      expect(warnings()).toEqual([
        expect.stringMatching(/^Still waits for the lock "order:1" after 0\.\d s: held by "the other", /),
      ]);
    });
  });

  describe('a hold beyond longHoldTime', () => {
    it('is an event and a log line, once', async () => {
      const lease = await locks.acquire('order:1', { label: 'order' });
      await pass(80);
      await lease.release();
      const { owner } = lease;
      const long = { name: 'order:1', label: 'order', owner, heldFor: expect.any(Number) };
      expect(of('held-long')).toEqual([{ type: 'held-long', ...long }]);
      expect(warnings()).toEqual([
        expect.stringMatching(/^Still holds the lock "order:1" \(owner .*\) after 0\.\d s$/),
      ]);
    });

    it('is not told of a hold that has ended before, released or lost', async () => {
      await (await locks.acquire('a')).release();
      await locks.acquire('b');
      await locks.forceRelease('b');
      await pass(60);
      expect(of('held-long')).toEqual([]);
    });
  });

  it.each(['longWaitTime', 'longHoldTime'] as const)('%s has to be a time', (option) => {
    expect(() => new LockService({ store, [option]: 'soon' })).toThrow(option);
    expect(() => new LockService({ store, [option]: 0 })).toThrow(option);
  });

  describe('a caller that has not got the lock', () => {
    it('is an event with the holder and the time that it has waited', async () => {
      const { owner } = await other.acquire('order:1');
      await locks.acquire('order:1', { label: 'order', waitTime: 20 }).catch(() => undefined);
      expect(of('timed-out')).toEqual([
        {
          type: 'timed-out',
          name: 'order:1',
          label: 'order',
          waited: expect.any(Number),
          reason: 'timeout',
          holder: owner,
          holderLabel: 'the other',
        },
      ]);
      expect(of('timed-out')[0]?.waited).toBeGreaterThanOrEqual(19);
    });

    it('is one by tryAcquire only where it has waited', async () => {
      await other.acquire('a');
      await locks.tryAcquire('a');
      expect(of('timed-out')).toEqual([]);
      await locks.tryAcquire('a', { waitTime: 5 });
      expect(of('timed-out')).toMatchObject([{ name: 'a', reason: 'timeout', holderLabel: 'the other' }]);
    });
  });

  it('a hand-over is an event after the acquisition: of this process, or of another one', async () => {
    const first = await other.acquire('a');
    const waiting = [locks.acquire('a', { label: 'one' }), locks.acquire('a', { label: 'two' })] as const;
    await until(async () => (await waitingFor('a')) === 2);
    await until(async () => (await locks.inspect('a'))?.waiters.processes === 1);
    await first.release();
    const leases = [await waiting[0]];
    await leases[0]?.release();
    leases.push(await waiting[1]);
    const events = of('handed-over').map(({ label, by, owner, fencingToken }) => [
      label,
      by,
      owner,
      fencingToken,
    ]);
    expect(events).toEqual([
      ['one', 'fleet', leases[0]?.owner, leases[0]?.fencingToken],
      ['two', 'local', leases[1]?.owner, leases[1]?.fencingToken],
    ]);
  });

  describe('a lease', () => {
    it('tells since when it is held, and for how long, also after its end', async () => {
      const before = Date.now();
      const lease = await locks.acquire('a', { label: 'group' });
      expect(lease.label).toBe('group');
      expect(lease.acquiredAt.getTime()).toBeGreaterThanOrEqual(before - 1);
      expect(lease.acquiredAt.getTime()).toBeLessThanOrEqual(Date.now() + 1);
      await pass(20);
      expect(lease.heldFor()).toBeGreaterThanOrEqual(18);
      await lease.release();
      const heldFor = lease.heldFor();
      await pass(20);
      expect(lease.heldFor()).toBe(heldFor);
      expect(lease.acquiredAt).toEqual(lease.acquiredAt);
    });
  });

  it.each(['', 'x'.repeat(1_025), 7, null])('the label %p is refused', async (label) => {
    const options = { label } as { label: string };
    await expect(locks.acquire('a', options)).rejects.toThrow('label: must be a text');
  });
});

describe('The longest hold', () => {
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
});
