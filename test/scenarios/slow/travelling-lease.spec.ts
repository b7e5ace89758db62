import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import {
  isLockClosedError,
  isLockConfigError,
  isLockLostError,
  type Lock,
  type LockLostError,
  type LockService,
} from '../../../lib/index.js';
import { lockKeys } from '../../support/keys.js';
import type { RedisServer } from '../../support/redis-server.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { TestEnvironment } from '../../support/test-environment.js';
import type { Worker } from '../../support/worker.js';
import { until } from '../until.js';

interface Held {
  id: number;
  owner: string;
  fencingToken: number;
  remainingTime: number;
}

const LEASE = 500;

const reasonOf = (promise: Promise<unknown>) =>
  promise.then(
    () => 'granted',
    (error: unknown) =>
      isLockLostError(error) ? error.reason : String((error as Partial<LockLostError>).reason ?? error),
  );

describe('A lease that goes from process to process', () => {
  const environment = new TestEnvironment();
  let server: RedisServer;
  let proxy: TcpProxy;
  let one: Worker;
  let two: Worker;
  let three: Worker;
  let observer: LockService;
  /** Behind the proxy. */
  let distant: LockService;
  let count = 0;
  let name: string;

  beforeAll(async () => {
    server = await environment.server();
    proxy = await TcpProxy.start(server.port);
    environment.add(() => proxy.stop());
    [one, two, three] = (await environment.workers(3, {
      url: server.url,
      service: { leaseTime: LEASE },
    })) as [Worker, Worker, Worker];
    observer = environment.service({ connection: server.url, leaseTime: LEASE });
    distant = environment.service({ connection: proxy.url, leaseTime: 3_000, waitTime: 1_000 });
  });

  beforeEach(() => {
    name = `travels:${String(++count)}`;
  });

  afterAll(() => environment.end());

  const acquire = (worker: Worker, options = {}) => worker.call<Held>('acquire', name, options);
  const handOver = (worker: Worker, { id }: Held, options = {}) =>
    worker.call<string>('handOver', id, options);
  const resume = (worker: Worker, ticket: string) => worker.call<Held>('resume', ticket);
  const owner = async () => (await observer.inspect(name))?.holders[0]?.owner;

  it('is renewed by the process that resumes it, and comes back, for locks of all kinds', async () => {
    const travel = async (kind: string) => {
      const lock = `${name}:${kind}`;
      const ownerOf = async () => (await observer.inspect(lock))?.holders[0]?.owner;
      const terms = kind === 'lock' ? {} : { kind, permits: 2 };
      const held = await one.call<Held>('acquire', lock, terms);
      const ticket = await handOver(one, held);
      const resumed = await resume(two, ticket);
      expect(resumed.fencingToken).toBeGreaterThan(held.fencingToken);
      await sleep(2 * LEASE);
      expect(await ownerOf()).toBe(resumed.owner);
      expect(await two.call('state', resumed.id)).toMatchObject({ held: true, aborted: false });
      expect(await one.call('state', held.id)).toMatchObject({ held: false, aborted: false });
      expect(await reasonOf(resume(three, ticket))).toBe('expired');

      const back = await handOver(two, resumed);
      const again = await resume(one, back);
      expect(again.fencingToken).toBeGreaterThan(resumed.fencingToken);
      await one.call('release', again.id);
    };
    await Promise.all(['lock', 'fair', 'read', 'write', 'semaphore'].map(travel));
    expect(await lockKeys(server.client())).toEqual([]);
  });

  it('stays taken for a process that gives it away and exits, and for the lease of one that is killed', async () => {
    const giver = await environment.worker({ url: server.url, service: { leaseTime: LEASE } });
    const ticket = await handOver(giver, await acquire(giver), { within: 5_000 });
    await giver.stop();
    await sleep(2 * LEASE);
    expect(await observer.tryAcquire(name)).toBeNull();
    const taker = await environment.worker({ url: server.url, service: { leaseTime: LEASE } });
    await resume(taker, ticket);
    const waiting = acquire(two);
    await sleep(LEASE / 2);
    const killed = performance.now();
    await taker.kill();
    const next = await waiting;
    expect(performance.now() - killed).toBeLessThan(LEASE + 1_500);
    await two.call('release', next.id);
  });

  it('is resumed by one of several processes that try at once, and wakes no waiter', async () => {
    const held = await acquire(one);
    const waiting = acquire(three);
    await until(async () => (await observer.inspect(name))?.waiters.processes === 1);
    const messages: string[] = [];
    const monitor = server.client().duplicate();
    environment.add(() => {
      monitor.disconnect();
    });
    await monitor.psubscribe('*');
    monitor.on('pmessage', (_, channel: string, message: string) => messages.push(`${channel} ${message}`));
    const ticket = await handOver(one, held);
    const tries = [one, two, one, two].map((worker) => resume(worker, ticket));
    const answers = await Promise.allSettled(tries);
    const winners = answers.flatMap((answer, n) =>
      answer.status === 'fulfilled' ? [{ worker: n % 2 === 0 ? one : two, lease: answer.value }] : [],
    );
    expect(winners).toHaveLength(1);
    await sleep(50);
    expect(messages.filter((message) => message.includes(name))).toEqual([]);
    const { worker, lease } = winners[0]!;
    expect(await owner()).toBe(lease.owner);
    await worker.call('release', lease.id);
    const next = await waiting;
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
    await three.call('release', next.id);
  });

  it('has its ticket, or is given up, where the service closes meanwhile', async () => {
    const closing = () => environment.service({ connection: server.url, leaseTime: 60_000 });
    const [one, two] = [closing(), closing()];
    const handingOver = (await one.acquire(name)).handOver();
    await one.close();
    const ticket = await handingOver;
    expect((await observer.inspect(name))?.holders).toHaveLength(1);
    await two.acquire(`${name}:before`);
    const resuming = two.resume(ticket).catch((error: unknown) => error);
    await two.close();
    expect(isLockClosedError(await resuming)).toBe(true);
    expect(await observer.inspect(name)).toBeNull();
  });

  it('is refused after a forced release, after FLUSHALL, and too late', async () => {
    const forced = await handOver(one, await acquire(one), { within: 30_000 });
    await observer.forceRelease(name);
    expect(await reasonOf(resume(two, forced))).toBe('deleted');

    const flushed = await handOver(one, await acquire(one), { within: 30_000 });
    await server.client().flushall();
    expect(await reasonOf(resume(two, flushed))).toBe('deleted');
    const next = await acquire(three);
    expect(await reasonOf(resume(two, flushed))).toBe('taken');
    await three.call('release', next.id);

    const late = await handOver(one, await acquire(one), { within: 100 });
    await sleep(120);
    expect(await reasonOf(resume(two, late))).toBe('expired');
    expect(await owner()).toBeUndefined();
  });

  it('survives a reply to handOver that is lost', async () => {
    const lease = await distant.acquire(name);
    proxy.cutAfterReplyBytes(0);
    const ticket = await lease.handOver();
    const resumed = await resume(two, ticket);
    expect(await owner()).toBe(resumed.owner);
    expect(resumed.fencingToken).toBeGreaterThan(lease.fencingToken);
    await two.call('release', resumed.id);
  });

  it('survives a reply to resume that is lost, under one owner', async () => {
    const ticket = await handOver(one, await acquire(one));
    await distant.acquire(`${name}:warm`);
    proxy.cutAfterReplyBytes(0);
    const resumed = await distant.resume(ticket);
    expect(await owner()).toBe(resumed.owner);
    expect(await reasonOf(resume(two, ticket))).not.toBe('granted');
    await resumed.release();
    expect(await owner()).toBeUndefined();
  });

  it.each(['handOver', 'resume'])(
    'is free, and not orphaned, when %s gets no answer at all',
    async (step) => {
      const lease = step === 'handOver' ? await distant.acquire(name) : undefined;
      const ticket = step === 'resume' ? await handOver(one, await acquire(one), { within: 60_000 }) : '';
      await distant.health();
      proxy.dropReplies(true);
      const answer = lease === undefined ? distant.resume(ticket) : lease.handOver({ within: 60_000 });
      expect(await reasonOf(answer)).toContain('temporarily unavailable');
      proxy.dropReplies(false);
      await until(async () => (await owner()) === undefined);
      if (step === 'resume') expect(await reasonOf(resume(two, ticket))).not.toBe('granted');
    },
  );
});

describe('On a Redlock', () => {
  const environment = new TestEnvironment();

  afterAll(() => environment.end());

  it('no lease travels, and the refusal says why', async () => {
    const servers = await Promise.all([1, 2, 3].map(() => environment.server()));
    const locks = environment.service({ nodes: servers.map(({ url }) => url) });
    const lock: Lock = locks.getLock('job');
    const lease = await lock.acquire();
    const error: unknown = await lease.handOver().catch((reason: unknown) => reason);
    expect(isLockConfigError(error)).toBe(true);
    expect((error as Error).message).toContain('nodes: has no leases that travel');
    expect(lease.held).toBe(true);
  });
});
