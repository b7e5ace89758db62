import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import type { LockEvent } from '../../lib/index.js';
import { createStore } from '../support/store.js';
import { CLAIM } from '../../lib/port/queue-messages.js';
import { ScriptedStore } from '../doubles/scripted-store.js';
import { Stage, until } from '../pitfalls/stage.js';
import { FAIR, type Kind, lockOf, queued, READ, semaphore, timed, WRITE } from './kinds.js';
import { fenceOf, queueOf } from '../support/keys.js';

const stage = Stage.set();
const KINDS: [string, Kind][] = [
  ['fair', FAIR],
  ['write', WRITE],
  ['read', READ],
  ['semaphore', semaphore(2)],
];
const HOUR = 3_600_000;

describe('The watchdog', () => {
  it('renews the holds of all kinds, the plain one included, with one command', async () => {
    const service = stage.service({ leaseTime: 6_000 });
    await (await service.acquire('connected')).release();
    // At once, because what is due within a tenth of the lease comes along.
    const locks = KINDS.flatMap(([name, kind]) =>
      Array.from({ length: 10 }, (_, n) => lockOf(service, `${name}:${String(n)}`, kind)),
    );
    const leases = await Promise.all([service.getLock('plain'), ...locks].map((lock) => lock.acquire()));
    await stage.server.resetCommandCalls();
    await sleep(3_000);
    // And one for the label of the process, after a second.
    expect(await stage.requests()).toBe(2);
    await sleep(4_000);
    expect(leases.every((lease) => lease.held)).toBe(true);
    await Promise.all(leases.map((lease) => lease.release()));
  });

  it.each([
    ['leaves the lease of a short wait alone', 0, 1],
    // And the labels of both: one has held and the other has waited for a second.
    ['a longer wait costs a look and a confirmation', 1_200, 5],
  ])('%s', async (_, wait, requests) => {
    const [a, b] = [stage.service(), stage.service()];
    for (let tries = 10; ; tries--) {
      const holder = await a.getFairLock('claim').acquire();
      const started = performance.now();
      const waiting = b.getFairLock('claim').acquire();
      await queued(a, 'claim', 1);
      await stage.server.resetCommandCalls();
      await sleep(wait);
      await holder.release();
      const lease = await waiting;
      const took = performance.now() - started;
      // No short wait, because this machine was busy.
      if (wait === 0 && took > CLAIM && tries > 0) {
        await lease.release();
        continue;
      }
      expect(await stage.requests()).toBe(requests);
      expect(await stage.ttl('claim')).toBeGreaterThan(20_000);
      await sleep(900);
      expect(await stage.requests()).toBe(requests);
      await lease.release();
      break;
    }
  });

  it.each(KINDS)('%s: tells of a key that was deleted', async (name, kind) => {
    const service = stage.service({ leaseTime: 900 });
    const events: LockEvent[] = [];
    service.events$.subscribe((event) => events.push(event));
    const lease = await lockOf(service, name, kind).acquire();
    await stage.redis.del(`lock:${name}`);
    await until(() => lease.signal.aborted);
    expect(lease.signal.reason).toMatchObject({ reason: 'deleted', key: name });
    expect(events).toContainEqual({
      type: 'lost',
      name,
      label: lease.label,
      owner: lease.owner,
      reason: 'deleted',
    });
  });

  it.each(KINDS)('%s: a frozen server cannot delay the news of the loss', async (name, kind) => {
    const service = stage.service({ leaseTime: 900 });
    const lease = await lockOf(service, name, kind).acquire();
    stage.server.freeze();
    await sleep(1_500);
    expect(lease.signal.aborted).toBe(true);
    expect(lease.held).toBe(false);
    stage.server.thaw();
    // Whatever was under way must not bring it back to life.
    await until(async () => (await service.inspect(name).catch(() => undefined)) === null);
  });

  it('a claim that cannot be confirmed is none: its waiter goes on waiting, and the next gets in after it', async () => {
    const proxy = await stage.proxy();
    const [a, b] = [stage.service(), stage.service({ connection: proxy.url })];
    const holder = await a.getFairLock('unconfirmed').acquire();
    const log: string[] = [];
    const waiting = b.getFairLock('unconfirmed').acquire({ waitTime: 20_000 });
    void waiting.then(() => log.push('first'));
    await queued(a, 'unconfirmed', 1);
    await sleep(1_200);
    const next = a.getFairLock('unconfirmed').acquire();
    await queued(a, 'unconfirmed', 2);
    proxy.dropRequests(true);
    await holder.release();
    const [second, took] = await timed(next);
    expect(took).toBeGreaterThan(900);
    expect(took).toBeLessThan(2_500);
    expect(log).toEqual([]);
    proxy.dropRequests(false);
    // Its connection has lost requests, and will be given up.
    proxy.cut();
    await queued(a, 'unconfirmed', 1);
    expect(log).toEqual([]);
    await second.release();
    const first = await waiting;
    expect(first.fencingToken).toBeGreaterThan(second.fencingToken);
    await first.release();
  });

  it('never revives what has ended in the store', async () => {
    const service = stage.service({ leaseTime: 900 });
    const first = await lockOf(service, 'over', READ).acquire();
    const second = await lockOf(service, 'over', READ).acquire();
    await stage.redis.zadd('lock:over', Date.now() - 1_000, `s${first.owner}`);
    await until(() => first.signal.aborted);
    expect(second.held).toBe(true);
    expect((await service.inspect('over'))?.holders).toMatchObject([{ owner: second.owner }]);
    await second.release();
  });
});

describe('An answer that is slower than the lease', () => {
  it.each([
    ['tryAcquire', { leaseTime: 200 }],
    ['tryAcquire with a wait time', { leaseTime: 200, waitTime: 500 }],
  ])('is none: %s comes to an end, and keeps nothing', async (_, options) => {
    const proxy = await stage.proxy();
    const service = stage.service({ connection: proxy.url });
    await service.inspect('warm-up');
    proxy.replyDelay(230);
    const outcome = service
      .getFairLock('slow')
      .tryAcquire(options)
      .catch((error: unknown) => error);
    expect(await Promise.race([outcome.then(() => 'over'), sleep(4_000, 'still asking')])).toBe('over');
    proxy.replyDelay(0);
    await until(async () => (await stage.ttl('slow')) === -2);
  });

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

  it('the fence outlives a lease that is extended and renewed', async () => {
    const service = stage.service();
    const lease = await service.getFairLock('extended').acquire();
    await lease.extend(5 * HOUR);
    expect(await stage.redis.pttl(fenceOf('lock:extended'))).toBeGreaterThan(await stage.ttl('extended'));
    await lease.release();
  });

  const SHARED: [string, Kind][] = [
    ['read', READ],
    ['semaphore', semaphore(3)],
  ];
  it.each(SHARED)(
    '%s: the fence outlives a long lease beside which a short one comes',
    async (name, kind) => {
      const service = stage.service();
      const lock = lockOf(service, name, kind);
      const long = await lock.acquire({ leaseTime: 5 * HOUR });
      const fenceStays = async () => {
        expect(await stage.redis.pttl(fenceOf(`lock:${name}`))).toBeGreaterThan(await stage.ttl(name));
      };
      const short = await lock.acquire({ leaseTime: 2_000 });
      await fenceStays();
      await short.release();
      await fenceStays();
      await long.release();
    },
  );

  it('the fence outlives a long lease beside which a short one was waited for', async () => {
    const service = stage.service();
    const lock = service.getSemaphore('beside', 2);
    const long = await lock.acquire({ leaseTime: 5 * HOUR });
    const holder = await lock.acquire();
    const waiting = lock.acquire({ leaseTime: 2_000 });
    await queued(service, 'beside', 1);
    await holder.release();
    const short = await waiting;
    expect(await stage.redis.pttl(fenceOf('lock:beside'))).toBeGreaterThan(await stage.ttl('beside'));
    // As a waiter does that has heard nothing of its grant.
    const { kind, mode, capacity } = { kind: 'semaphore', mode: 'shared', capacity: 2 } as const;
    const queue = { kind, mode, capacity, entry: undefined, ownWriteHold: undefined };
    const store = createStore({ connection: stage.server.url }, { keyPrefix: 'lock:', leaseTime: 30_000 });
    await store.acquire({ name: 'beside', owner: short.owner, leaseTime: 2_000, queue });
    await store.close();
    expect(await stage.redis.pttl(fenceOf('lock:beside'))).toBeGreaterThan(await stage.ttl('beside'));
    await short.release();
    await long.release();
  });

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

  it.each([
    ['string', () => stage.redis.set('lock:other', 'theirs')],
    ['list', () => stage.redis.rpush('lock:other', 'theirs')],
    ['set', () => stage.redis.sadd('lock:other', 'theirs')],
    ['hash', () => stage.redis.hset('lock:other', 'theirs', 1)],
  ])('a %s under the name of the lock stays as it is', async (_, put) => {
    await put();
    const before = await stage.redis.dump('lock:other');
    const service = stage.service();
    for (const [, kind] of KINDS) {
      await expect(lockOf(service, 'other', kind).acquire()).rejects.toMatchObject({
        code: 'LOCK_KIND_MISMATCH',
      });
    }
    await sleep(50);
    expect(await stage.redis.dump('lock:other')).toBe(before);
    expect(await stage.redis.keys('*')).toEqual(['lock:other']);
  });

  it('a release costs callers that do not wait nothing: a try on a busy lock is one command', async () => {
    const [a, b] = [stage.service(), stage.service()];
    const lease = await a.getFairLock('try').acquire();
    await stage.server.resetCommandCalls();
    const [outcome] = await timed(b.getFairLock('try').tryAcquire());
    expect(outcome).toBeNull();
    await sleep(50);
    expect(await stage.requests()).toBe(1);
    await lease.release();
  });
});
