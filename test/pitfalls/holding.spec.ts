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
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { type Lease, type Lock, LockLostError, type LockService, type LockStore } from '../../lib/index.js';
import { createStore } from '../support/store.js';
import * as scripts from '../support/scripts.js';
import { blockFor, soon, Stage, until } from './stage.js';

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
  ])('goes on after a renewal %s (pitfall 13)', async (_, way) => {
    const proxy = await stage.proxy();
    const locks = stage.service({ connection: proxy.url, leaseTime: 2_000 });
    const failures: unknown[] = [];
    locks.events$.subscribe((event) => event.type === 'renewal-failed' && failures.push(event.error));
    const lease = await locks.acquire('a');
    if (way === 'freeze') {
      stage.server.freeze();
    } else {
      proxy.refuse(true);
      proxy.cut();
    }
    await until(() => failures.length > 0);
    stage.server.thaw();
    proxy.refuse(false);
    // Longer than what was left of the lease.
    await sleep(2_500);
    expect(lease.held).toBe(true);
    expect(await stage.redis.hkeys('lock:a')).toEqual([lease.owner]);
  });

  it('forgets a lock that is released while its renewal is under way (pitfall 14)', async () => {
    const proxy = await stage.proxy();
    const locks = stage.service({ connection: proxy.url, leaseTime: 2_000 });
    const lease = await locks.acquire('a');
    proxy.replyDelay(200);
    const monitor = await stage.server.monitor();
    await until(() => monitor.commands.length > 0 && proxy.underway('replies') > 0);
    await lease.release();
    proxy.replyDelay(0);
    // Time for two more.
    await sleep(1_500);
    await monitor.stop();
    const requests = monitor.commands.map(([, sha]) => sha);
    expect(requests).toContain(scripts.release.sha);
    expect(requests.slice(requests.indexOf(scripts.release.sha))).not.toContain(scripts.renew.sha);
    expect(await stage.ttl('a')).toBe(-2);
  });

  it('forgets a lock that was taken again in the moment of its loss, once that is released (pitfall 14)', async () => {
    const locks = stage.service({ leaseTime: 300 });
    await locks.acquire('a');
    // The process is busy until after the end of the lease, and this call comes before any timer.
    blockFor(400);
    const again = await locks.tryAcquire('a');
    expect(again).not.toBeNull();
    await again?.release();
    await sleep(500);
    expect(await stage.ttl('a')).toBe(-2);
    expect((await locks.health()).renewalHeadroom).toBeUndefined();
  });

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

  it('renews nothing behind a release that leaves the lock taken for a while (pitfall 14)', async () => {
    const proxy = await stage.proxy();
    const locks = stage.service({ connection: proxy.url, leaseTime: 3_000 });
    const monitor = await stage.server.monitor();
    const renewed = until(() => monitor.commands.some(([, sha]) => sha === scripts.renew.sha));
    await locks.using('a', { minHoldTime: 1_500 }, async () => {
      // What a server knows after a restart, when somebody has released a lock but nobody has renewed one.
      await stage.redis.script('FLUSH');
      await stage.redis.script('LOAD', scripts.release.source);
      proxy.replyDelay(200);
      // Its answer, that the script is unknown, comes after the end of this callback.
      await renewed;
    });
    await monitor.stop();
    await sleep(1_000);
    expect(await stage.ttl('a')).toBe(-2);
  });

  it('sends a handful of renewals for a lease however short it is (pitfall 16)', async () => {
    const locks = stage.service();
    await locks.acquire('a', { leaseTime: 900, renew: true });
    await stage.server.resetCommandCalls();
    await sleep(1_000);
    const renewals = await stage.requests();
    expect(renewals).toBeGreaterThanOrEqual(2);
    // Three are due; a machine that stalls may cost a few more.
    expect(renewals).toBeLessThan(20);
  });

  it('renews on one node while another is dead (pitfall 17)', async () => {
    const second = await stage.secondServer();
    const settings = { keyPrefix: 'lock:', leaseTime: 1_500 };
    const store = sharded(
      [stage.server.url, second.url].map((connection) => createStore({ connection }, settings)),
    );
    const locks = stage.service({ store, leaseTime: settings.leaseTime });
    const leases = await Promise.all(['a0', 'b1', 'c0', 'd1'].map((name) => locks.acquire(name)));
    const losses = leases.filter((lease) => lease.name.endsWith('1')).map(lossOf);
    await second.stop();
    await soon(Promise.all(losses));
    // A renewal or two later.
    await sleep(1_000);
    expect(leases.map((lease) => lease.held)).toEqual([true, false, true, false]);
  });

  it('loses the one lock whose key has become something else, and no other of its batch (pitfall 17)', async () => {
    const locks = stage.service({ leaseTime: 1_500 });
    const leases = await Promise.all(['a', 'b', 'c'].map((name) => locks.acquire(name)));
    const loss = lossOf(leases[1]!);
    await stage.redis.set('lock:b', 'not a lock');
    await soon(loss);
    await sleep(1_500);
    expect(leases.map((lease) => lease.held)).toEqual([true, false, true]);
    expect(await stage.redis.get('lock:b')).toBe('not a lock');
  });
});

describe('a holder', () => {
  it.each([
    ['renewed', {}],
    ['fixed', { leaseTime: 2_000 }],
  ])(
    'of a %s lease is told at its deadline, though a frozen store answers nothing (pitfall 15)',
    async (_, options) => {
      const lease = await stage.service({ leaseTime: 3_000 }).acquire('a', options);
      const loss = lossOf(lease);
      stage.server.freeze();
      // Of two timers the earlier one fires first, however slow the machine is.
      const late = sleep(lease.remainingTime() + 100, 'late');
      expect(await Promise.race([loss, late])).toMatchObject({ code: 'LOCK_LOST' });
      expect(lease.held).toBe(false);
      await late;
    },
  );

  it('that looks at its lease knows at once, even where no timer could fire (pitfall 15)', async () => {
    const lease = await stage.service({ leaseTime: 300 }).acquire('a');
    const { signal } = lease;
    blockFor(Math.ceil(lease.remainingTime()));
    expect(lease.held).toBe(false);
    expect(lease.remainingTime()).toBe(0);
    expect(signal.aborted).toBe(true);
    expect(() => {
      lease.assertHeld();
    }).toThrow(LockLostError);
  });

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

  const KINDS: [string, (locks: LockService) => Lock][] = [
    ['plain', (locks) => locks.getLock('a')],
    ['fair', (locks) => locks.getFairLock('a')],
    ['read', (locks) => locks.getReadWriteLock('a').read],
    ['write', (locks) => locks.getReadWriteLock('a').write],
    ['semaphore', (locks) => locks.getSemaphore('a', 2)],
  ];
  it.each(KINDS)(
    'of a %s lock is told at once when it is taken away by force (pitfall 49)',
    async (_, lockOf) => {
      const lock = lockOf(stage.service());
      // Neither is renewed or looked at within 10 s.
      const lease = await lock.acquire({ leaseTime: 60_000 });
      const loss = lossOf(lease);
      await sleep(1_100);
      await stage.service().forceRelease('a');
      expect(await soon(loss)).toMatchObject({ reason: 'deleted', owner: lease.owner });
      expect(lease.held).toBe(false);
    },
  );

  it.each(['DEL', 'FLUSHALL'])(
    'of a fixed lease is told of a %s within a third of it (pitfall 49)',
    async (command) => {
      const acquiredAt = performance.now();
      const lease = await stage.service().acquire('a', { leaseTime: 6_000 });
      const loss = lossOf(lease);
      await (command === 'DEL' ? stage.redis.del('lock:a') : stage.redis.flushall());
      expect(await loss).toMatchObject({ reason: 'deleted' });
      // Not at the end of the lease.
      expect(performance.now() - acquiredAt).toBeLessThan(4_500);
    },
  );

  it.each([
    ['renewed', {}],
    ['fixed', { leaseTime: 60_000 }],
  ])('of a %s lease that is gone keeps no caller of its process out (pitfall 49)', async (_, options) => {
    const [locks, other] = [stage.service(), stage.service()];
    const believed = await locks.acquire('a', options);
    await stage.redis.del('lock:a');
    const lease = await locks.tryAcquire('a');
    expect(lease?.held).toBe(true);
    expect(believed.held).toBe(false);
    await lease?.release();

    await locks.acquire('b', options);
    await stage.redis.flushall();
    expect((await locks.acquire('b', { waitTime: 100 })).held).toBe(true);

    await locks.acquire('c', options);
    const waiting = locks.acquire('c', { waitTime: 50_000 });
    await until(async () => (await locks.inspect('c'))?.waiters.local === 1);
    await sleep(150);
    await other.forceRelease('c');
    expect((await soon(waiting)).held).toBe(true);
  });

  it('whose key is gone is told with the next renewal (pitfall 18)', async () => {
    const lease = await stage.service({ leaseTime: 900 }).acquire('a');
    const loss = lossOf(lease);
    await stage.redis.del('lock:a');
    expect(await soon(loss)).toMatchObject({ reason: 'deleted' });
    expect(lease.held).toBe(false);
  });

  it('survives the death of its store, and so does its process (pitfall 18)', async () => {
    const server = await stage.secondServer();
    const worker = await stage.worker({ leaseTime: 900 }, server.url);
    const { id } = await worker.call<{ id: number }>('acquire', 'a');
    const waiting = worker.call('acquire', 'a', { waitTime: 1_500 });
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

  it('that was extended is not cut by a shorter extension, nor by the watchdog (pitfall 19)', async () => {
    const lease = await stage.service({ leaseTime: 900 }).acquire('a');
    await lease.extend(20_000);
    await lease.extend(1_000);
    expect(await timeOf(lease)).toEqual({ promised: 2, stored: 2 });
    await stage.server.resetCommandCalls();
    await until(async () => (await stage.requests()) > 0);
    expect(await stage.ttl('a')).toBeGreaterThan(15_000);
    expect(lease.remainingTime()).toBeGreaterThan(15_000);
  });

  it('with a time of its own says nothing about the next one of the same lock (pitfall 20)', async () => {
    const lock = stage.service({ leaseTime: 1_500 }).getLock('a');
    await (await lock.acquire({ leaseTime: 20_000 })).release();
    const renewed = await lock.acquire();
    expect(await stage.ttl('a')).toBeLessThanOrEqual(1_500);
    await sleep(2_000);
    expect(renewed.held).toBe(true);
    await renewed.release();

    const fixed = await lock.acquire({ leaseTime: 200 });
    await soon(lossOf(fixed));
    await lock.using(async (lease) => {
      expect(lease.remainingTime()).toBeGreaterThan(500);
    });
  });
});
