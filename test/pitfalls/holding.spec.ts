/**
 * Holding. The numbers are those of a list of verified defects of other lock libraries; what is tested is that ours
 * has none of them.
 *
 * 13  The watchdog stops for good after one failed renewal.
 * 14  It outlives the release, armed from a callback that races the cancel: the lock is renewed for ever.
 * 15  It learns of a loss from a reply only: the holder is never told, or late.
 * 16  A busy loop of renewals when the lease is short: 7,891 commands in 500 ms.
 * 17  One failing shard aborts the renewals of all others.
 * 18  A failed renewal becomes an unhandled rejection and ends the process; the lock says that it is held although
 *     its key is gone.
 * 19  A re-entry with a shorter lease cuts the longer one, or leases add up.
 * 20  The last explicit lease leaks into later calls on the same object.
 * 49  A fixed lease is never looked at: a forced release is not heard, and the holder's process refuses its own callers.
 */
import { describe, expect, it } from '@jest/globals';
import type { Lease, LockLostError, LockStore } from '../../lib/index.js';
import { createStore } from '../support/store.js';
import { loadScripts } from '../world/holds.js';
import { inWorld } from '../world/index.js';
import { Stage, until } from './stage.js';

const stage = Stage.set();

/** Resolves with the reason when the holder is told that it has lost the lock. */
const lossOf = ({ signal }: Lease) =>
  new Promise<LockLostError>((resolve) => {
    signal.addEventListener('abort', () => {
      resolve(signal.reason as LockLostError);
    });
  });

/** One store made of several: the digit at the end of a lock's name says which of them has it. */
function sharded(shards: readonly LockStore[]): LockStore {
  const shardOf = ({ name }: { name: string }) => shards[Number(name.at(-1))]!;
  const store: Partial<LockStore> = {
    acquire: (request) => shardOf(request).acquire(request),
    renew: (holds) => holds.flatMap((hold) => shardOf(hold).renew([hold])),
    release: (request) => shardOf(request).release(request),
    close: async () => {
      for (const shard of shards) await shard.close();
    },
  };
  return Object.assign(Object.create(shards[0]!) as LockStore, store);
}

describe('the watchdog', () => {
  it.each([
    ['that gets no answer', 'freeze'],
    ['that finds no connection', 'refuse'],
  ])('goes on after a renewal %s (pitfall 13)', (_, way) =>
    inWorld(1, async ({ process, server, pass, until }) => {
      const holder = process({ leaseTime: 2_000 });
      const lease = await holder.locks.acquire('a');
      await pass(500);
      let mend: () => void = () => undefined;
      if (way === 'freeze') server.pause(600);
      else mend = holder.cut();
      await until(() => holder.events.some(({ type }) => type === 'renewal-failed'));
      mend();
      await pass(30_000);
      expect(lease.held).toBe(true);
      expect((await process().locks.inspect('a'))?.holders[0]?.owner).toBe(lease.owner);
    }),
  );

  it('forgets a lock that is released while its renewal is under way (pitfall 14)', () =>
    inWorld(2, async ({ process, server, pass, until }) => {
      const holder = process({ leaseTime: 2_000 });
      const lease = await holder.locks.acquire('a');
      holder.slow('back', 200);
      const before = server.commands;
      await until(() => server.commands > before);
      await lease.release();
      holder.slow('back', 0);
      await pass(1_000);
      const after = server.commands;
      await pass(10_000);
      // Fifteen renewals would be due.
      expect(server.commands - after).toBeLessThan(5);
      expect(await holder.locks.inspect('a')).toBeNull();
    }));

  it('keeps the lock taken for minHoldTime where the application shuts down during the job', async () => {
    const locks = stage.service();
    const lease = await locks.acquire('a', { minHoldTime: '1h' });
    await locks.getFairLock('b').acquire({ minHoldTime: '1h' });
    await locks.acquire('c');
    await locks.close();
    expect(lease.held).toBe(false);
    await lease.release();
    for (const name of ['a', 'b']) expect(await stage.ttl(name)).toBeGreaterThan(3_000_000);
    expect(await stage.ttl('c')).toBe(-2);
  });

  it('sends a handful of renewals for a lease however short it is (pitfall 16)', () =>
    inWorld(3, async ({ process, server, pass }) => {
      const holder = process();
      await loadScripts(holder);
      await holder.locks.acquire('a', { leaseTime: 900, renew: true });
      const before = server.commands;
      await pass(950);
      expect(server.commands - before).toBe(3);
    }));

  it('renews on one node while another is dead (pitfall 17)', async () => {
    const second = await stage.secondServer();
    const settings = { keyPrefix: 'lock:', leaseTime: 6_000 };
    const store = sharded(
      [stage.server.url, second.url].map((connection) => createStore({ connection }, settings)),
    );
    const locks = stage.service({ store, leaseTime: settings.leaseTime });
    const leases = await Promise.all(['a0', 'b1', 'c0', 'd1'].map((name) => locks.acquire(name)));
    const losses = leases.filter((lease) => lease.name.endsWith('1')).map(lossOf);
    await second.stop();
    await Promise.all(losses);
    const before = await stage.requests();
    await until(async () => (await stage.requests()) > before + 1);
    expect(leases.map((lease) => lease.held)).toEqual([true, false, true, false]);
  });

  it('loses the one lock whose key has become something else, and no other of its batch (pitfall 17)', () =>
    inWorld(4, async ({ process, pass, until }) => {
      const [holder, other] = [process({ leaseTime: 1_500 }), process()];
      const leases = await Promise.all(['a', 'b', 'c'].map((name) => holder.locks.acquire(name)));
      const redis = other.redis();
      await redis.set('lock:b', 'not a lock');
      await until(() => leases[1]!.signal.aborted);
      await pass(1_500);
      expect(leases.map((lease) => lease.held)).toEqual([true, false, true]);
      expect(await redis.get('lock:b')).toBe('not a lock');
    }));
});

describe('a holder', () => {
  it.each([
    ['renewed', {}],
    ['fixed', { leaseTime: 2_000 }],
  ])(
    'of a %s lease is told at its deadline, though a frozen store answers nothing (pitfall 15)',
    (_, options) =>
      inWorld(5, async ({ process, server, until }) => {
        const holder = process({ leaseTime: 3_000 });
        const lease = await holder.locks.acquire('a', options);
        const deadline = holder.clock + lease.remainingTime();
        server.pause(60_000);
        await until(() => lease.signal.aborted);
        expect(lease.signal.reason).toMatchObject({ code: 'LOCK_LOST' });
        expect(lease.held).toBe(false);
        // A timer may be a ms late, and the script looks each ms.
        expect(holder.clock - deadline).toBeLessThan(5);
      }),
  );

  it('knows when its process goes on after a pause longer than the lease (pitfall 15)', async () => {
    const worker = await stage.worker();
    // A fixed one, of which no answer to a renewal tells.
    const { id } = await worker.call<{ id: number }>('acquire', 'a', { leaseTime: 600 });
    worker.freeze();
    const state = worker.call('state', id);
    expect((await stage.service().acquire('a')).held).toBe(true);
    worker.thaw();
    expect(await state).toMatchObject({ held: false, remainingTime: 0 });
    expect(await worker.call('state', id)).toMatchObject({ aborted: true });
    await worker.stop();
  });

  it.each(['DEL', 'FLUSHALL'])(
    'of a fixed lease is told of a %s within a third of it (pitfall 49)',
    (command) =>
      inWorld(7, async ({ process, server, now, until }) => {
        const lease = await process().locks.acquire('a', { leaseTime: 6_000 });
        const acquired = now();
        if (command === 'DEL') server.delete('lock:a');
        else server.flush();
        await until(() => lease.signal.aborted);
        expect(lease.signal.reason).toMatchObject({ reason: 'deleted' });
        expect(now() - acquired).toBeLessThan(2_100);
      }),
  );

  it('survives the death of its store, and so does its process (pitfall 18)', async () => {
    const server = await stage.secondServer();
    const worker = await stage.worker({ leaseTime: 3_000 }, server.url);
    const { id } = await worker.call<{ id: number }>('acquire', 'a');
    const waiting = worker.call('acquire', 'a', { waitTime: 6_000 });
    await server.kill();
    await expect(waiting).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    expect(await worker.call('state', id)).toMatchObject({
      held: false,
      aborted: true,
      reason: 'unreachable',
    });
    await worker.call('release', id);
    // Rejects when the process has died of something, or does not end.
    await worker.stop();
  });
});

describe('a lease', () => {
  /** In tens of seconds, so that the test itself may take some. */
  const timeOf = async (lease: Lease) => ({
    promised: Math.round(lease.remainingTime() / 10_000),
    stored: Math.round((await stage.ttl(lease.name)) / 10_000),
  });

  it('is neither cut by a shorter one of a re-entry, nor do they add up (pitfall 19)', async () => {
    const locks = stage.service();
    await locks.using('a', { leaseTime: 20_000 }, async (outer) => {
      await locks.using('a', { leaseTime: 1_000 }, async (inner) => {
        expect(await timeOf(inner)).toEqual({ promised: 2, stored: 2 });
      });
      expect(await timeOf(outer)).toEqual({ promised: 2, stored: 2 });
      await locks.using('a', { leaseTime: 40_000 }, async (inner) => {
        expect(await timeOf(inner)).toEqual({ promised: 4, stored: 4 });
      });
      // The store keeps what it has granted. The lease ends when it did before, and is released then.
      expect(await timeOf(outer)).toEqual({ promised: 2, stored: 4 });
    });
  });

  it('with a time of its own says nothing about the next one of the same lock (pitfall 20)', () =>
    inWorld(8, async ({ process, pass, until }) => {
      const lock = process({ leaseTime: 1_500 }).locks.getLock('a');
      await (await lock.acquire({ leaseTime: 20_000 })).release();
      const renewed = await lock.acquire();
      expect(await lock.remainingTime()).toBeLessThanOrEqual(1_500);
      await pass(2_000);
      expect(renewed.held).toBe(true);
      await renewed.release();

      const fixed = await lock.acquire({ leaseTime: 200 });
      await until(() => fixed.signal.aborted);
      await lock.using((lease) => {
        expect(lease.remainingTime()).toBeGreaterThan(500);
      });
    }));
});
