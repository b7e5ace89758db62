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
import { QUEUE_CHANNEL } from '../support/keys.js';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { type LockService, LockUnavailableError } from '../../lib/index.js';
import { createStore } from '../support/store.js';
import * as scripts from '../support/scripts.js';
import { soon, Stage, until } from './stage.js';

const stage = Stage.set();

/** Another process's hold, as its scripts would have written it. */
const takeAsOther = (name: string, ttl: number) =>
  stage.redis
    .multi()
    .del(`lock:${name}`)
    .hset(`lock:${name}`, 'other:1', 1)
    .pexpire(`lock:${name}`, ttl)
    .exec();

/** So that a connection for messages is there, and the next subscription is one request over it. */
const waitOnce = async (locks: LockService) => {
  await takeAsOther('before', 50);
  await (await locks.acquire('before')).release();
};

/** Another process's release. */
const releaseAsOther = (name: string) =>
  stage.redis.multi().del(`lock:${name}`).publish(`redisson_lock__channel:{lock:${name}}`, '0').exec();

describe('a waiter', () => {
  it('tries again behind its subscription, and so gets what was released before it (pitfall 1)', async () => {
    const holder = stage.service();
    const proxy = await stage.proxy();
    const waiter = stage.service({ connection: proxy.url });
    await waitOnce(waiter);
    const monitor = await stage.server.monitor();
    let served = 0;
    // One of five is enough: polling, which is what is left without the second try, takes longer than this wait time.
    for (const name of ['a', 'b', 'c', 'd', 'e']) {
      const lease = await holder.acquire(name);
      const requests = () => monitor.commands.filter((command) => command.includes(`lock:${name}`)).length;
      proxy.requestDelay(50);
      const waiting = waiter.tryAcquire(name, { waitTime: 450 });
      await until(() => requests() === 2);
      // The answer "busy" is on its way, and the subscription comes 50 ms behind it.
      await lease.release();
      if ((await waiting) !== null) served++;
      proxy.requestDelay(0);
    }
    await monitor.stop();
    expect(served).toBeGreaterThan(0);
  });

  it('tries again when the subscription came to stand while the answer was on its way (pitfall 1)', async () => {
    const proxy = await stage.proxy();
    const locks = stage.service({ connection: proxy.url });
    await waitOnce(locks);

    const lease = await locks.acquire('a', { leaseTime: 60_000 });
    proxy.requestDelay(1_000);
    const waiting = locks.acquire('a');
    await until(() => proxy.underway('requests') === 1);
    proxy.requestDelay(0);
    // The subscription is under way. Meanwhile the lock changes hands, and the answer about that takes long.
    await takeAsOther('a', 30_000);
    const monitor = await stage.server.monitor();
    proxy.replyDelay(2_500);
    const released = lease.release();
    const commands = () => monitor.commands.filter((command) => !command.join().includes('~ndl:label'));
    await until(() => commands().length === 2 && proxy.underway('replies') > 0);
    proxy.replyDelay(0);
    await monitor.stop();
    expect(await stage.listening('a')).toBe(0);
    await releaseAsOther('a');
    await released;
    expect((await waiting).held).toBe(true);
  });

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

  it('that is served leaves its entry to the next waiter (pitfall 2)', async () => {
    const [holder, waiters] = [stage.service(), stage.service()];
    const first = await holder.acquire('a');
    const served = waiters.acquire('a');
    await until(async () => (await stage.waiting('a')) === 1);
    await first.release();
    await (await served).release();

    const second = await holder.acquire('a');
    const next = waiters.acquire('a');
    await sleep(1_500);
    expect(await stage.waiting('a')).toBe(1);
    await second.release();
    expect((await next).held).toBe(true);
  });

  it.each([
    ['with hand-off', 16, 0.5],
    ['without', 0, 3],
  ])('wakes alone: 30 of one process cost what one costs, %s (pitfall 3)', async (_, localHandoff, most) => {
    const lease = await stage.service().acquire('a');
    const waiters = stage.service({ localHandoff });
    const waiting = Promise.all(Array.from({ length: 30 }, () => waiters.using('a', () => sleep(1))));
    await until(async () => (await stage.waiting('a')) === 1);
    await stage.server.resetCommandCalls();
    await lease.release();
    await waiting;
    expect(await stage.requests()).toBeLessThanOrEqual(30 * most);
  });

  it.each([
    ['abort', 'LOCK_ABORTED'],
    ['timeout', 'LOCK_UNAVAILABLE'],
  ])('that gives up (%s) just as it is served passes the lock on (pitfall 4)', async (way, code) => {
    const proxy = await stage.proxy();
    const [leaver, other] = [stage.service({ connection: proxy.url }), stage.service()];
    await leaver.health();
    const controller = new AbortController();
    proxy.replyDelay(900);
    const leaving = leaver.acquire('a', {
      signal: controller.signal,
      waitTime: way === 'abort' ? 9_000 : 300,
    });
    await until(async () => (await stage.ttl('a')) > 0);
    const waiting = other.acquire('a');
    await until(async () => (await stage.waiting('a')) === 1);
    if (way === 'abort') controller.abort();
    await expect(leaving).rejects.toMatchObject({ code });
    expect((await waiting).held).toBe(true);
  });

  it('that gives up while its request is in flight leaves the answer to its sibling (pitfall 4)', async () => {
    const proxy = await stage.proxy();
    const locks = stage.service({ connection: proxy.url });
    await locks.health();
    const controller = new AbortController();
    proxy.replyDelay(300);
    const leaving = locks.acquire('a', { signal: controller.signal });
    const sibling = locks.acquire('a');
    await until(async () => (await stage.ttl('a')) > 0);
    controller.abort();
    await expect(leaving).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
    const lease = await sibling;
    expect(await stage.redis.hkeys('lock:a')).toEqual([lease.owner]);
  });

  it('does without key-expiry events, however many keys expire (pitfall 11)', async () => {
    const fill = `for i = 1, 100000 do redis.call('SET', ARGV[1] .. i, '', 'PX', 60000) end`;
    for (const part of ['a', 'b', 'c', 'd', 'e']) await stage.redis.eval(fill, 0, part);
    await takeAsOther('crowded', 1_000);
    const locks = stage.service();
    expect((await locks.acquire('crowded', { waitTime: 5_000 })).held).toBe(true);
    const calls = await stage.server.commandCalls();
    expect(Object.keys(calls).filter((name) => /^(config|psubscribe)/.test(name))).toEqual([]);
  });

  it('is served when the lease of a process that was killed ends (pitfall 11)', async () => {
    const worker = await stage.worker({ leaseTime: 1_500 });
    await worker.call('acquire', 'a');
    const waiting = stage.service().acquire('a');
    await until(async () => (await stage.waiting('a')) === 1);
    await worker.kill();
    expect((await waiting).held).toBe(true);
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

  it('listens again after subscriptions that failed, one by one (pitfall 12)', async () => {
    const proxy = await stage.proxy();
    const [holder, waiters] = [stage.service(), stage.service({ connection: proxy.url })];
    const names = Array.from({ length: 50 }, (_, n) => `a${String(n)}`);
    const leases = await Promise.all(names.map((name) => holder.acquire(name)));
    const waiting = Promise.all(names.map((name) => waiters.acquire(name, { waitTime: Infinity })));
    const { id } = (waiters as unknown as { client: { id: string } }).client;
    const listening = async () => Number((await stage.redis.pubsub('NUMSUB', `${QUEUE_CHANNEL}${id}`))[1]);
    const subscribed = async () => {
      await until(async () => (await listening()) === 1);
      for (const name of names) await until(async () => (await stage.waiting(name)) === 1);
    };
    const cut = async () => {
      const before = proxy.connections;
      proxy.cut();
      // It comes back soon, and then one look would be too late to see that it was gone.
      await until(async () => proxy.connections < before || (await listening()) === 0);
    };
    await subscribed();
    proxy.replyDelay(100);
    for (let round = 0; round < 3; round++) {
      // Each time but the first, what is lost are the confirmations of the subscriptions.
      await cut();
      await subscribed();
    }
    proxy.replyDelay(0);
    await cut();
    await subscribed();
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

  it('is no refusal when the client sends the acquisition once more (pitfall 5)', async () => {
    const proxy = await stage.proxy();
    // With its defaults, ioredis sends again what was in flight when the connection broke.
    const locks = stage.service({ connection: stage.client(proxy.url) });
    await locks.health();
    proxy.cutAfterReplyBytes(0);
    const lease = await locks.acquire('a');
    expect(await stage.redis.hkeys('lock:a')).toEqual([lease.owner]);
    await lease.release();
    expect(await stage.ttl('a')).toBe(-2);
  });

  it('is no refusal when the acquisition arrives twice (pitfall 5)', async () => {
    const store = createStore({ connection: stage.server.url }, { keyPrefix: 'lock:', leaseTime: 30_000 });
    const request = { name: 'a', owner: 'client:1', leaseTime: 30_000 };
    expect(await store.acquire(request)).toMatchObject({ granted: true });
    expect(await store.acquire(request)).toMatchObject({ granted: true });
    expect(await store.release(request)).toBe('released');
    expect(await stage.ttl('a')).toBe(-2);
    await store.close();
  });

  it('to an extension costs no extension, when its connection was reset', async () => {
    const proxy = await stage.proxy();
    const locks = stage.service({ connection: proxy.url });
    const lease = await locks.acquire('a', { leaseTime: 10_000 });
    proxy.cutAfterReplyBytes(0);
    await lease.extend(60_000);
    expect(lease.remainingTime()).toBeGreaterThan(50_000);
    await lease.release();
    expect(await stage.ttl('a')).toBe(-2);
  });

  it('to an extension leaves no lock behind that no caller knows of (pitfall 5)', async () => {
    const proxy = await stage.proxy();
    const locks = stage.service({ connection: proxy.url });
    // Longer than two timeouts of a command, of which the second one follows if the connection has rested before.
    const lease = await locks.acquire('a', { leaseTime: 8_000 });
    proxy.dropReplies(true);
    await expect(lease.extend(60_000)).rejects.toBeInstanceOf(LockUnavailableError);
    proxy.dropReplies(false);
    await until(() => !lease.held);
    await lease.release();
    expect((await stage.service().acquire('a')).held).toBe(true);
  });

  it('to an extension is made up for, even when the store comes back after the end of the lease (pitfall 5)', async () => {
    const proxy = await stage.proxy();
    const locks = stage.service({ connection: proxy.url });
    const lease = await locks.acquire('a', { leaseTime: 1_000 });
    proxy.refuse(true);
    proxy.cutAfterReplyBytes(0);
    await expect(lease.extend(60_000)).rejects.toBeInstanceOf(LockUnavailableError);
    await until(() => !lease.held);
    await sleep(2_500);
    proxy.refuse(false);
    expect((await stage.service().acquire('a')).held).toBe(true);
  });
});

describe('the lease that an acquisition returns', () => {
  it('is counted from the last request, not from the start of the wait (pitfall 6)', async () => {
    await takeAsOther('a', 1_500);
    const lease = await stage.service().acquire('a', { leaseTime: 1_000 });
    expect(lease.held).toBe(true);
    expect(lease.remainingTime()).toBeGreaterThan(500);
  });

  it('is counted from the request, not from the reply: the store never ends it earlier (pitfall 6)', async () => {
    const proxy = await stage.proxy();
    const locks = stage.service({ connection: proxy.url });
    await locks.health();
    proxy.replyDelay(500);
    const lease = await locks.acquire('a', { leaseTime: 5_000 });
    const ttl = await stage.ttl('a');
    expect(lease.remainingTime()).toBeLessThanOrEqual(ttl);
    proxy.replyDelay(0);
  });

  it('is refused when the reply came after its end, and is given back (pitfall 6)', async () => {
    const proxy = await stage.proxy();
    const locks = stage.service({ connection: proxy.url });
    await locks.health();
    await stage.server.resetCommandCalls();
    proxy.replyDelay(600);
    await expect(locks.tryAcquire('a', { leaseTime: 400 })).rejects.toBeInstanceOf(LockUnavailableError);
    expect(locks.leases()).toEqual([]);
    // The acquisition and its release.
    await until(async () => (await stage.requests()) === 2);
    proxy.replyDelay(0);
  });

  it('is refused when one of several locks has ended before the last was there (pitfall 6)', async () => {
    const proxy = await stage.proxy();
    const locks = stage.service({ connection: proxy.url });
    await locks.health();
    proxy.replyDelay(250);
    const lease = await locks.tryAcquire(['a', 'b', 'c', 'd'], { leaseTime: 500 }).catch(() => null);
    proxy.replyDelay(0);
    expect(lease === null || lease.held).toBe(true);
  });
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
      const waiting = locks.acquire('a', { waitTime: 60_000 });
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
  it('is reported soon when it is dead (pitfall 8)', async () => {
    const dead = await stage.secondServer();
    await dead.stop();
    const locks = stage.service({ connection: dead.url });
    await expect(soon(locks.tryAcquire('a'))).rejects.toBeInstanceOf(LockUnavailableError);
  });

  it('is reported soon when it is frozen, through a client of ours or of the application (pitfall 8)', async () => {
    const services = [stage.service(), stage.service({ connection: stage.client() })];
    await Promise.all(services.map((locks) => locks.health()));
    stage.server.freeze();
    const requests = services.flatMap((locks) => [
      locks.tryAcquire('a'),
      locks.acquire('b', { waitTime: 1_000 }),
    ]);
    for (const answer of await soon(Promise.allSettled(requests))) {
      expect(answer).toMatchObject({ status: 'rejected', reason: { code: 'LOCK_UNAVAILABLE' } });
    }
    stage.server.thaw();
  });

  it('is another error than a lock that is busy, and only the former is logged (pitfall 9)', async () => {
    const lines: unknown[] = [];
    const write = (line: unknown) => lines.push(line);
    Logger.overrideLogger({
      log: write,
      warn: write,
      error: write,
      debug: write,
      verbose: write,
      fatal: write,
    });
    const locks = stage.service();
    const lease = await stage.service().acquire('a');
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
    await Promise.all(Array.from({ length: 20 }, () => locks.using('b', () => sleep(1))));
    expect(lines).toEqual([]);

    await stage.server.kill();
    const outage = await Promise.allSettled([locks.tryAcquire('a'), locks.acquire('a', { waitTime: 500 })]);
    for (const answer of outage) {
      expect(answer).toMatchObject({ status: 'rejected', reason: { code: 'LOCK_UNAVAILABLE', status: 503 } });
    }
    expect(lines).not.toEqual([]);
    Logger.overrideLogger(false);
  });

  it('turns a wait that began with "busy" into the error of an outage (pitfall 9)', async () => {
    await stage.service().acquire('a');
    const waiting = stage.service().acquire('a', { waitTime: 1_500 });
    await until(async () => (await stage.waiting('a')) === 1);
    await stage.server.kill();
    await expect(waiting).rejects.toBeInstanceOf(LockUnavailableError);
  });
});

describe("the caller's signal", () => {
  it('takes back the request that is in flight (pitfall 10)', async () => {
    const proxy = await stage.proxy();
    const locks = stage.service({ connection: proxy.url });
    await locks.health();
    await stage.server.resetCommandCalls();
    proxy.requestDelay(300);
    const controller = new AbortController();
    const waiting = locks.acquire('a', { signal: controller.signal });
    await until(() => proxy.underway('requests') === 1);
    controller.abort();
    await expect(waiting).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
    await until(async () => (await stage.requests()) === 2);
    expect(await stage.ttl('a')).toBe(-2);
  });

  it('takes back a request for which the script has to be sent once more (pitfall 10)', async () => {
    const proxy = await stage.proxy();
    const locks = stage.service({ connection: proxy.url });
    await locks.health();
    // What a server knows after a restart, when somebody has released a lock but nobody has taken one.
    await stage.redis.script('FLUSH');
    await stage.redis.script('LOAD', scripts.release.source);
    proxy.replyDelay(200);
    const controller = new AbortController();
    const waiting = locks.acquire('a', { signal: controller.signal });
    await sleep(50);
    controller.abort();
    await expect(waiting).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
    await sleep(1_000);
    expect(await stage.ttl('a')).toBe(-2);
  });

  it('takes back a request that the network delivers after a reconnection (pitfall 10)', async () => {
    const proxy = await stage.proxy();
    // As ours: what was in flight when the connection broke is not sent again.
    const client = stage.client(proxy.url, { maxRetriesPerRequest: 0 });
    const locks = stage.service({ connection: client });
    await locks.health();
    proxy.requestDelay(1_000);
    const controller = new AbortController();
    const waiting = locks.acquire('a', { signal: controller.signal });
    await until(() => proxy.underway('requests') === 1);
    // The last words of the old connection are still on their way when the new one stands.
    proxy.requestDelay(0);
    client.disconnect(true);
    controller.abort();
    await expect(waiting).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
    await sleep(1_500);
    expect((await stage.service().acquire('a')).held).toBe(true);
  });

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

  it('says unavailable, not busy, at the end of its wait (pitfall 64)', async () => {
    const held = await lockOf(stage.service()).acquire();
    const caller = unconfirmed();
    // From now on it receives messages, and its waiters have entries in queues.
    await expect(caller.getFairLock('b').acquire({ waitTime: 100 })).rejects.toThrow();
    const waits = [60, 300, 900].map((waitTime) => lockOf(caller).acquire({ waitTime }));
    const answers = await Promise.allSettled(waits);
    for (const answer of answers) expect(answer).toMatchObject({ reason: { code: 'LOCK_UNAVAILABLE' } });
    await held.release();
    await until(async () => (await caller.inspect('a')) === null);
  });
});
