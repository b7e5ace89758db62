/**
 * Acquiring and waiting. The numbers are those of a list of verified defects of other lock libraries; what is tested
 * is that ours has none of them.
 *
 *  1  Try, then subscribe, then wait without trying again: a release in between is missed, and waiters sleep for the
 *     whole TTL.
 *  2  A waiter that is done unsubscribes the channel that its siblings still wait on.
 *  3  Every local waiter wakes at every release: 18 to 108 commands per acquisition with 30 waiters.
 *  4  The woken waiter gives up, and nobody else is woken until the TTL is over.
 *  5  The reply is lost after the server has applied the command: the key stays for its whole TTL, and nobody knows
 *     that they own it.
 *  6  A lock is returned whose validity was over already: the wait was longer than the lease, or replies were slow.
 *  7  Wall-clock arithmetic, or an absolute expiry that the client computes.
 *  8  No command timeout: with a dead server the first error comes after 10 s, with a frozen one never.
 *  9  "Busy" and "Redis is down" are the same error, and ordinary contention logs errors.
 * 10  The clean-up runs on the caller's own aborted signal and does nothing; what was in flight lands after the release.
 * 11  Waiting for key-expiry events, which come seconds late where there are many volatile keys.
 * 12  A subscription pool that runs dry, or a leaked permit, silences channels for the life of the process.
 * 80  A waiter whose grant could not be confirmed (too few replicas) stays the holder in the store between its tries.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { type LockService } from '../../lib/index.js';
import * as scripts from '../support/scripts.js';
import { Stage, until } from './stage.js';
import { loadScripts, queueLength } from '../world/holds.js';
import { inWorld } from '../world/index.js';
import { first } from '../support/tier.js';

const stage = Stage.set();

/** Another process's hold, as its scripts would have written it. */
const takeAsOther = (name: string, ttl: number) =>
  stage.redis
    .multi()
    .del(`lock:${name}`)
    .hset(`lock:${name}`, 'other:1', 1)
    .pexpire(`lock:${name}`, ttl)
    .exec();

describe('a waiter', () => {
  it.each(first(1, [1, 2, 3]))(
    'hears of a release at whatever moment of its beginning that comes (pitfall 1, seed %i)',
    (seed) =>
      inWorld(seed, async ({ process, pass, now }) => {
        const [holder, waiter] = [process(), process()];
        // Its answer "busy", its subscription and its second try are 50 ms apart.
        waiter.slow('there', 50);
        for (let moment = 0; moment < 400; moment += 10) {
          const lease = await holder.locks.acquire('a');
          const waiting = waiter.locks.acquire('a', { waitTime: 60_000 });
          await pass(moment);
          const released = now();
          await lease.release();
          await (await waiting).release();
          // Polling, which is what is left without the second try, takes longer.
          expect(now() - released).toBeLessThan(400);
        }
      }),
  );

  it('that leaves lets its siblings wait on (pitfall 2)', async () => {
    const lease = await stage.service().acquire('a');
    const waiters = stage.service();
    const controller = new AbortController();
    const patient = waiters.acquire('a', { waitTime: 60_000 });
    const impatient = waiters.acquire('a', { waitTime: 100 });
    const aborted = waiters.acquire('a', { signal: controller.signal });
    await expect(impatient).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
    controller.abort();
    await expect(aborted).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
    await until(async () => (await stage.waiting('a')) === 1);
    await lease.release();
    expect((await patient).held).toBe(true);
  });

  it.each([
    ['with hand-off', 16, 0.5],
    ['without', 0, 3],
  ])('wakes alone: 30 of one process cost what one costs, %s (pitfall 3)', (_, localHandoff, most) =>
    inWorld(1, async ({ process, server, pass, until }) => {
      const [{ locks: holder }, one] = [process(), process({ localHandoff })];
      await loadScripts(one);
      const lease = await holder.acquire('a');
      const waiting = Promise.all(Array.from({ length: 30 }, () => one.locks.using('a', () => pass(1))));
      await until(async () => (await queueLength(holder, 'a')) === 1);
      const before = server.commands;
      await lease.release();
      await waiting;
      expect(server.commands - before).toBeLessThanOrEqual(30 * most);
    }),
  );

  it.each([
    ['abort', 'LOCK_ABORTED'],
    ['timeout', 'LOCK_UNAVAILABLE'],
  ])('that gives up (%s) just as it is served passes the lock on (pitfall 4)', (way, code) =>
    inWorld(1, async ({ process, server, until }) => {
      const [leaver, { locks: other }] = [process(), process()];
      await loadScripts(leaver);
      await leaver.locks.health();
      const controller = new AbortController();
      leaver.slow('back', 900);
      const waitTime = way === 'abort' ? 9_000 : 300;
      const leaving = leaver.locks.acquire('a', { signal: controller.signal, waitTime });
      const refused = expect(leaving).rejects.toMatchObject({ code });
      await until(() => server.keys.includes('lock:a'));
      const waiting = other.acquire('a');
      if (way === 'abort') {
        await until(async () => (await queueLength(other, 'a')) === 1);
        controller.abort();
      }
      await refused;
      expect((await waiting).held).toBe(true);
    }),
  );

  it('does without key-expiry events (pitfall 11)', async () => {
    await takeAsOther('crowded', 1_000);
    const locks = stage.service();
    expect((await locks.acquire('crowded', { waitTime: 60_000 })).held).toBe(true);
    const calls = await stage.server.commandCalls();
    expect(Object.keys(calls).filter((name) => /^(config|psubscribe)/.test(name))).toEqual([]);
  });

  it('is told of its turn among a thousand others (pitfall 12)', async () => {
    const [holder, waiters] = [stage.service(), stage.service()];
    const names = Array.from({ length: 1_000 }, (_, n) => `a${String(n)}`);
    const leases = await Promise.all(names.map((name) => holder.acquire(name)));
    const waiting = Promise.all(names.map((name) => waiters.acquire(name, { waitTime: 120_000 })));
    const standing = async () => (await stage.redis.keys('lock:a*queue*')).length;
    await until(async () => (await standing()) === names.length);
    await Promise.all(leases.map((lease) => lease.release()));
    expect(await waiting).toHaveLength(names.length);
  });
});

describe('a reply that was lost', () => {
  it('to an acquisition leaves no lock behind that no caller knows of (pitfall 5)', async () => {
    const proxy = await stage.proxy();
    const locks = stage.service({ connection: proxy.url });
    await locks.health();
    proxy.cutAfterReplyBytes(0);
    const lease = await locks.acquire('a');
    expect(await stage.redis.hkeys('lock:a')).toEqual([lease.owner]);
    await lease.release();
    expect(await stage.ttl('a')).toBe(-2);
  });

  it('to an extension is made up for, even when the store comes back after the end of the lease (pitfall 5)', () =>
    inWorld(1, async ({ process, server, pass, until }) => {
      const [holder, other] = [process(), process()];
      const lease = await holder.locks.acquire('a', { leaseTime: 1_000 });
      await loadScripts(other);
      holder.silence('back', 60_000);
      const before = server.commands;
      const extended = lease.extend(60_000);
      const refused = expect(extended).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
      await until(() => server.commands > before);
      const mend = holder.cut();
      await refused;
      await until(() => !lease.held);
      await pass(2_500);
      expect(server.keys).toContain('lock:a');
      holder.silence('back', 0);
      mend();
      expect((await other.locks.acquire('a')).held).toBe(true);
    }));
});

describe('the lease that an acquisition returns', () => {
  it('is counted from the last request, not from the start of the wait (pitfall 6)', () =>
    inWorld(1, async ({ process }) => {
      const [other, { locks }] = [process(), process()];
      await other.locks.acquire('a', { leaseTime: 1_500 });
      const lease = await locks.acquire('a', { leaseTime: 1_000 });
      expect(lease.held).toBe(true);
      expect(lease.remainingTime()).toBeGreaterThan(500);
    }));

  it('is refused when the reply came after its end, and is given back (pitfall 6)', () =>
    inWorld(1, async ({ process, server, until }) => {
      const one = process();
      await one.locks.health();
      await loadScripts(one);
      const before = server.commands;
      one.slow('back', 600);
      await expect(one.locks.tryAcquire('a', { leaseTime: 400 })).rejects.toMatchObject({
        code: 'LOCK_UNAVAILABLE',
      });
      expect(one.locks.leases()).toEqual([]);
      // The acquisition and its release.
      await until(() => server.commands === before + 2);
      expect(server.keys).toEqual([]);
    }));
});

describe('time', () => {
  afterEach(() => {
    jest.restoreAllMocks();
  });

  it.each([
    ['forward', 1],
    ['back', -1],
  ])(
    'is not the wall clock: when that jumps %s an hour, no lease is lost and no caller gives up (pitfall 7)',
    async (_, way) => {
      const locks = stage.service();
      const lease = await locks.acquire('a');
      const waiting = locks.acquire('a', { waitTime: 3_600_000 });
      let waiter = 'waits';
      waiting.then(
        () => (waiter = 'has it'),
        () => (waiter = 'has given up'),
      );
      const present = Date.now.bind(Date);
      jest.spyOn(Date, 'now').mockImplementation(() => present() + way * 3_600_000);
      await sleep(200);
      expect(lease.held).toBe(true);
      expect(lease.remainingTime()).toBeGreaterThan(20_000);
      expect(lease.remainingTime()).toBeLessThan(30_000);
      expect(waiter).toBe('waits');
      await lease.release();
      expect((await waiting).held).toBe(true);
    },
  );

  it('reaches the store as a duration, so that a wrong clock here ends nothing there (pitfall 7)', async () => {
    const present = Date.now.bind(Date);
    jest.spyOn(Date, 'now').mockImplementation(() => present() + 3_600_000);
    const lease = await stage.service().acquire('a');
    expect(await stage.ttl('a')).toBeLessThanOrEqual(30_000);
    expect(await stage.ttl('a')).toBeGreaterThan(20_000);
    await lease.extend(50_000);
    expect(await stage.ttl('a')).toBeLessThanOrEqual(50_000);
    expect(await stage.ttl('a')).toBeGreaterThan(40_000);
  });
});

describe('a store that does not answer', () => {
  it('is reported when it is frozen, through a client of ours or of the application (pitfall 8)', async () => {
    const services = [stage.service(), stage.service({ connection: stage.client() })];
    await Promise.all(services.map((locks) => locks.health()));
    stage.server.freeze();
    const requests = services.flatMap((locks) => [
      locks.tryAcquire('a'),
      locks.acquire('b', { waitTime: 1_000 }),
    ]);
    for (const answer of await Promise.allSettled(requests)) {
      expect(answer).toMatchObject({ status: 'rejected', reason: { code: 'LOCK_UNAVAILABLE' } });
    }
    stage.server.thaw();
  });

  it('is another error than a lock that is busy, and only the former is logged (pitfall 9)', () =>
    inWorld(1, async ({ process, server, pass }) => {
      const [one, other] = [process(), process()];
      const { locks } = one;
      const lease = await other.locks.acquire('a');
      const lines = one.logs.length;
      const contention = [
        locks.tryAcquire('a'),
        locks.tryAcquire('a', { waitTime: 50 }),
        locks.acquire('a', { waitTime: 50 }).catch((error: unknown) => error),
      ];
      expect(await Promise.all(contention)).toEqual([
        null,
        null,
        expect.objectContaining({ code: 'LOCK_TIMEOUT', status: 409, holder: lease.owner }),
      ]);
      await Promise.all(Array.from({ length: 20 }, () => locks.using('b', () => pass(1))));
      expect(one.logs.slice(lines)).toEqual([]);

      server.crash();
      const outage = await Promise.allSettled([locks.tryAcquire('a'), locks.acquire('a', { waitTime: 500 })]);
      for (const answer of outage) {
        expect(answer).toMatchObject({
          status: 'rejected',
          reason: { code: 'LOCK_UNAVAILABLE', status: 503 },
        });
      }
      expect(one.logs.length).toBeGreaterThan(lines);
    }));
});

describe("the caller's signal", () => {
  it('takes back the request that is in flight (pitfall 10)', () =>
    inWorld(1, async ({ process, server, until }) => {
      const one = process();
      await one.locks.health();
      await loadScripts(one);
      const before = server.commands;
      one.slow('there', 300);
      const controller = new AbortController();
      const waiting = one.locks.acquire('a', { signal: controller.signal });
      const refused = expect(waiting).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
      controller.abort();
      await refused;
      await until(() => server.commands === before + 2);
      expect(server.keys).toEqual([]);
    }));

  it('takes back a request for which the script has to be sent once more (pitfall 10)', () =>
    inWorld(1, async ({ process, server, pass, until }) => {
      const one = process();
      await one.locks.health();
      // What a server knows after a restart, when somebody has released a lock but nobody has taken one.
      server.forgetScripts();
      await process().redis().script('LOAD', scripts.release.source);
      one.slow('back', 200);
      const controller = new AbortController();
      const waiting = one.locks.acquire('a', { signal: controller.signal });
      const refused = expect(waiting).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
      await pass(50);
      controller.abort();
      await refused;
      await pass(1_000);
      await until(() => server.keys.length === 0);
    }));

  it('does not keep a lock from being released that was taken with it (pitfall 10)', async () => {
    const controller = new AbortController();
    const work = stage.service().using('a', { signal: controller.signal }, () => {
      controller.abort();
      throw new Error('aborted');
    });
    await expect(work).rejects.toThrow('aborted');
    expect(await stage.ttl('a')).toBe(-2);
  });
});

describe.each([
  ['plain', (locks: LockService) => locks.getLock('a')],
  ['fair', (locks: LockService) => locks.getFairLock('a')],
])('a waiter whose %s lock no replica confirms', (_, lockOf) => {
  const unconfirmed = () => stage.service({ replication: { replicas: 1, timeout: 50 } });

  it('keeps no other out between its tries (pitfall 80)', async () => {
    const waiters = [unconfirmed(), unconfirmed()];
    const stop = new AbortController();
    const waiting = waiters.map((locks) =>
      lockOf(locks)
        .acquire({ waitTime: Infinity, signal: stop.signal })
        .catch((error: unknown) => error),
    );
    // Both have been granted the lock in vain.
    await until(async () => ((await stage.server.commandCalls()).wait ?? 0) >= 4);
    await (await lockOf(stage.service()).acquire({ waitTime: 8_000 })).release();
    // Nor does "busy" stand for "unavailable".
    const caller = unconfirmed();
    const answers = await Promise.all(
      Array.from({ length: 20 }, () =>
        lockOf(caller)
          .tryAcquire()
          .catch((error: unknown) => error),
      ),
    );
    const group = caller.getMultiLock([lockOf(caller), caller.getLock('b')]);
    const several = await group.tryAcquire().catch((error: unknown) => error);
    for (const answer of [...answers, several]) expect(answer).toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    stop.abort();
    expect(await Promise.all(waiting)).toMatchObject([{ code: 'LOCK_ABORTED' }, { code: 'LOCK_ABORTED' }]);
    await until(async () => (await waiters[0]!.inspect('a')) === null);
  });
});
