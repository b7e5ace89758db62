import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { CLAIM } from '../../lib/store/queue-messages.js';
import { ScriptedStore } from '../doubles/scripted-store.js';
import { Stage, until } from '../pitfalls/stage.js';
import { FAIR, type Kind, lockOf, queued, READ, semaphore, WRITE } from './kinds.js';
import { fenceOf, queueOf } from '../support/keys.js';
import { loadScripts, queueLength } from '../world/holds.js';
import { inWorld } from '../world/index.js';

const stage = Stage.set();
const KINDS: [string, Kind][] = [
  ['fair', FAIR],
  ['write', WRITE],
  ['read', READ],
  ['semaphore', semaphore(2)],
];
const HOUR = 3_600_000;

describe('The watchdog', () => {
  it('renews the holds of all kinds, the plain one included, with one command', () =>
    inWorld(1, async ({ process, server, pass }) => {
      const own = process({ leaseTime: 6_000 });
      const { locks } = own;
      await loadScripts(own);
      await (await locks.acquire('connected')).release();
      // At once, because what is due within a tenth of the lease comes along.
      const all = KINDS.flatMap(([name, kind]) =>
        Array.from({ length: 10 }, (_, n) => lockOf(locks, `${name}:${String(n)}`, kind)),
      );
      const leases = await Promise.all([locks.getLock('plain'), ...all].map((lock) => lock.acquire()));
      // By then, the process has written its label, and has asked about holds that began before its subscription did.
      await pass(1_500);
      const before = server.commands;
      await pass(1_500);
      expect(server.commands - before).toBe(1);
      await pass(4_000);
      expect(leases.every((lease) => lease.held)).toBe(true);
    }));

  it.each([
    ['leaves the lease of a short wait alone', 0, 1],
    // And the labels of both: one has held and the other has waited for a second.
    ['a longer wait costs a look and a confirmation', 1_200, 5],
  ])('%s', (_, wait, requests) =>
    inWorld(2, async ({ process, server, pass, until }) => {
      const [a, b] = [process(), process()];
      await loadScripts(a);
      const holder = await a.locks.getFairLock('claim').acquire();
      const waiting = b.locks.getFairLock('claim').acquire();
      await until(async () => (await queueLength(a.locks, 'claim')) === 1);
      // Once for its first subscription, a process asks whether messages come from the server of the commands.
      await pass(20);
      const before = server.commands;
      await pass(wait);
      await holder.release();
      const lease = await waiting;
      // The confirmation is sent before the caller has the lease, and may still be under way.
      await pass(20);
      expect(server.commands - before).toBe(requests);
      expect(await a.locks.getFairLock('claim').remainingTime()).toBeGreaterThan(20_000);
      const confirmed = server.commands;
      await pass(600);
      expect(server.commands).toBe(confirmed);
      await lease.release();
    }),
  );

  it.each<[string, Kind]>([['plain', {}], ...KINDS])('%s: tells of a key that was deleted', (name, kind) =>
    inWorld(3, async ({ process, server, until }) => {
      const { locks, events } = process({ leaseTime: 900 });
      const lease = await lockOf(locks, name, kind).acquire();
      server.delete(`lock:${name}`);
      await until(() => lease.signal.aborted);
      expect(lease.signal.reason).toMatchObject({ reason: 'deleted', key: name });
      const { label, owner } = lease;
      expect(events).toContainEqual({
        type: 'lost',
        name,
        label,
        owner,
        reason: 'deleted',
        forced: undefined,
      });
    }),
  );

  it('a claim that cannot be confirmed is none: its waiter goes on waiting, and the next gets in after it', () =>
    inWorld(5, async ({ process, pass, now, until }) => {
      const [a, b] = [process(), process()];
      const lock = a.locks.getFairLock('unconfirmed');
      const waiters = (count: number) =>
        until(async () => (await queueLength(a.locks, 'unconfirmed')) === count);
      const holder = await lock.acquire();
      let isServed = false;
      const waiting = b.locks.getFairLock('unconfirmed').acquire({ waitTime: 60_000 });
      void waiting.then(() => (isServed = true));
      await waiters(1);
      await pass(CLAIM + 200);
      const next = lock.acquire();
      await waiters(2);
      b.silence('there', 3_000);
      const released = now();
      await holder.release();
      const second = await next;
      expect(now() - released).toBeGreaterThan(0.9 * CLAIM);
      expect(now() - released).toBeLessThan(2 * CLAIM);
      await pass(3_000);
      await waiters(1);
      expect(isServed).toBe(false);
      await second.release();
      const first = await waiting;
      expect(first.fencingToken).toBeGreaterThan(second.fencingToken);
      await first.release();
    }));
});

describe('An answer that is slower than the lease', () => {
  it('is none when the wait time is over, and is not asked for again', async () => {
    const store = new ScriptedStore();
    const service = stage.service({ store });
    store.afterAcquire = () => sleep(150);
    const lock = service.getFairLock('slow');
    await expect(lock.acquire({ leaseTime: 100, waitTime: 100 })).rejects.toMatchObject({
      code: 'LOCK_UNAVAILABLE',
    });
    expect(store.calls.acquire).toBe(1);
    await until(async () => (await service.inspect('slow')) === null);
  });
});

describe('What is in the store', () => {
  it.each(KINDS)(
    '%s: the fence, which knows the kind, outlives a long lease that was waited for',
    async (name, kind) => {
      const service = stage.service();
      const holders = [await lockOf(service, name, kind === READ ? WRITE : kind).acquire()];
      if (kind.permits === 2) holders.push(await lockOf(service, name, kind).acquire());
      const waiting = lockOf(service, name, kind).acquire({ leaseTime: 5 * HOUR });
      await queued(service, name, 1);
      await Promise.all(holders.map((holder) => holder.release()));
      const lease = await waiting;
      await until(async () => (await stage.ttl(name)) > 4 * HOUR);
      expect(await stage.redis.pttl(fenceOf(`lock:${name}`))).toBeGreaterThan(await stage.ttl(name));
      await lease.release();
    },
  );

  it.each<[string, Kind]>([['plain', {}], ...KINDS])(
    '%s: the fence outlives a lock that is kept for long after its release',
    async (name, kind) => {
      await lockOf(stage.service(), name, kind).using({ minHoldTime: 5 * HOUR }, () => undefined);
      expect(await stage.ttl(name)).toBeGreaterThan(4 * HOUR);
      expect(await stage.redis.pttl(fenceOf(`lock:${name}`))).toBeGreaterThan(await stage.ttl(name));
    },
  );

  it('the queue outlives the lease that it waits for', async () => {
    const service = stage.service();
    const lease = await service.getFairLock('long').acquire({ leaseTime: 5 * HOUR });
    const waiting = service.getFairLock('long').acquire();
    await queued(service, 'long', 1);
    expect(await stage.redis.pttl(queueOf('lock:long'))).toBeGreaterThan(await stage.ttl('long'));
    await lease.release();
    await (await waiting).release();
  });

  it('the key goes with the last of the holders', async () => {
    const service = stage.service();
    const long = await lockOf(service, 'key', READ).acquire({ leaseTime: 20_000 });
    await lockOf(service, 'key', READ).acquire({ leaseTime: 2_000 });
    await long.release();
    expect(await stage.ttl('key')).toBeLessThanOrEqual(2_000);
  });

  it('a try on a busy lock is one command, and its caller leaves nothing', () =>
    inWorld(7, async ({ process, server, pass }) => {
      const [a, b] = [process(), process()];
      await loadScripts(a);
      await b.locks.health();
      await a.locks.getFairLock('try').acquire();
      const before = server.commands;
      expect(await b.locks.getFairLock('try').tryAcquire()).toBeNull();
      await pass(50);
      expect(server.commands - before).toBe(1);
    }));
});
