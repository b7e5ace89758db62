import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { isLockConfigError, type LockService } from '../../../lib/index.js';
import { mayStay, roleOf } from '../../support/keys.js';
import { RedisCluster } from '../../support/redis-cluster.js';
import type { RedisServer } from '../../support/redis-server.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { TestEnvironment } from '../../support/test-environment.js';
import type { Worker } from '../../support/worker.js';
import { until } from '../until.js';

type Answer = { ran: true; value: number } | { ran: false; since: number };

const LEASE = 500;
const PERIOD = 60_000;

describe('Work of a fleet that runs once per period', () => {
  const environment = new TestEnvironment();
  let server: RedisServer;
  let crew: Worker[];
  let observer: LockService;
  let proxy: TcpProxy;
  let count = 0;
  let name: string;

  beforeAll(async () => {
    server = await environment.server();
    crew = await environment.workers(3, { url: server.url, service: { leaseTime: LEASE } });
    observer = environment.service({ connection: server.url, leaseTime: LEASE });
    proxy = await TcpProxy.start(server.port);
    environment.add(() => proxy.stop());
  });

  beforeEach(() => {
    name = `once:${String(++count)}`;
  });

  afterAll(() => environment.end());

  const call = (worker: Worker, work = {}, options = {}) =>
    worker.call<Answer>('once', name, { period: PERIOD, ...options }, work);
  const begun = async () => (await server.client().lrange(`${name}:begun`, 0, -1)).length;
  const done = async () => (await server.client().lrange(`${name}:done`, 0, -1)).length;
  const ran = (answers: readonly Answer[]) => answers.filter((answer) => answer.ran).length;

  it('runs in one process, whichever comes first and however many come again', async () => {
    const both = () => crew.flatMap((worker) => [call(worker, { work: 30 }), call(worker, { work: 30 })]);
    expect(ran(await Promise.all(both()))).toBe(1);
    const again = await Promise.all(both());
    expect(ran(again)).toBe(0);
    for (const answer of again) expect((answer as { since: number }).since).toBeLessThan(30_000);
    expect([await begun(), await done()]).toEqual([1, 1]);
    expect(await observer.inspect(name)).toBeNull();
    const keys = (await server.client().keys(`lock:${name}*`)).filter((key) => roleOf(key) !== undefined);
    expect(keys.every(mayStay)).toBe(true);
    for (const key of keys) expect(await server.client().pttl(key)).toBeGreaterThan(0);
    const mark = keys.find((key) => roleOf(key) === 'done');
    expect(await server.client().pttl(mark!)).toBeLessThanOrEqual(PERIOD);
  });

  it('runs in the next process after a failure, once its pause is over', async () => {
    const failed = call(crew[0]!, { fail: true, work: 30 }, { retryAfterFailure: 400 });
    await until(async () => (await begun()) === 1);
    const others = [call(crew[1]!), call(crew[2]!)];
    await expect(failed).rejects.toThrow('the work has failed');
    await sleep(200);
    expect(await begun()).toBe(1);
    expect(ran(await Promise.all(others))).toBe(1);
    expect([await begun(), await done()]).toEqual([2, 1]);
  });

  it('runs in the next process after a crash, when the lease is over', async () => {
    const victim = await environment.worker({ url: server.url, service: { leaseTime: LEASE } });
    call(victim, { crash: true }).catch(() => undefined);
    await until(async () => (await begun()) === 1);
    const since = performance.now();
    expect(ran(await Promise.all(crew.map((worker) => call(worker))))).toBe(1);
    expect(performance.now() - since).toBeLessThan(LEASE + 1_500);
    expect(await done()).toBe(1);
  });

  it('does not count where its process was frozen for longer than the lease', async () => {
    const frozen = call(crew[0]!, { work: 100 });
    await until(async () => (await begun()) === 1);
    crew[0]!.freeze();
    const next = await call(crew[1]!);
    expect(next.ran).toBe(true);
    crew[0]!.thaw();
    await expect(frozen).rejects.toMatchObject({ code: 'LOCK_LOST' });
    expect(ran(await Promise.all(crew.map((worker) => call(worker))))).toBe(0);
  });

  it('counts where the reply to its note was lost', async () => {
    const distant = environment.service({ connection: proxy.url, leaseTime: 3_000 });
    const answer = await distant.once(name, { period: PERIOD }, () => {
      proxy.cutAfterReplyBytes(0);
    });
    expect(answer.ran).toBe(true);
    expect((await call(crew[0]!)).ran).toBe(false);
  });
});

describe('Once per period', () => {
  const environment = new TestEnvironment();
  let cluster: RedisCluster | undefined;

  afterAll(async () => {
    await environment.end();
    await cluster?.stop();
  });

  it('works on a cluster, with names that have hash tags of their own', async () => {
    cluster = await RedisCluster.start();
    const connection = { cluster: cluster.addresses };
    const [a, b] = [environment.service({ connection }), environment.service({ connection })];
    for (const name of ['report', '{tag}:report', 'odd}one', '{']) {
      const calls = [a, b, a, b].map((locks) => locks.once(name, { period: '1h' }, () => sleep(20)));
      expect((await Promise.all(calls)).filter(({ ran }) => ran)).toHaveLength(1);
    }
  });

  it('is refused on a Redlock, with the reason', async () => {
    const servers = await Promise.all([1, 2, 3].map(() => environment.server()));
    const locks = environment.service({ nodes: servers.map(({ url }) => url) });
    const error: unknown = await locks
      .once('x', { period: 1_000 }, () => 0)
      .catch((reason: unknown) => reason);
    expect(isLockConfigError(error)).toBe(true);
    expect((error as Error).message).toContain('nodes: runs nothing once per period');
  });
});
