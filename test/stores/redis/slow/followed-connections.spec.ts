import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis-5';
import type { LockService } from '../../../../lib/index.js';
import { until } from '../../../scenarios/until.js';
import { TcpProxy } from '../../../support/tcp-proxy.js';
import { TestEnvironment } from '../../../support/test-environment.js';
import { serverOfEach } from '../../../support/test-servers.js';

const environment = TestEnvironment.ofEach();
const server = serverOfEach();

describe('A call while its connection is being given up', () => {
  it('waits for the one that follows', async () => {
    // Its own commands are refused meanwhile.
    const client = environment.client(
      new Redis(server.url, { enableOfflineQueue: false, lazyConnect: true }),
    );
    await client.connect();
    const locks = environment.service({ connection: client });
    const lease = await locks.acquire('held');
    client.disconnect(true);
    const other = await locks.tryAcquire('other');
    expect(other?.held).toBe(true);
    await Promise.all([lease.release(), other?.release()]);
  });
});

describe('A connection that is lost before its first answer', () => {
  const moduleOf = (source: string) => `data:text/javascript,${encodeURIComponent(source)}`;
  const RESOLVE = `export const resolve = (name, context, next) =>
    next(name === 'ioredis' ? 'ioredis-5' : name, context);`;
  const WITH_IOREDIS_5 = `import { register } from 'node:module'; register(${JSON.stringify(moduleOf(RESOLVE))}, ${JSON.stringify(import.meta.url)});`;

  it.each([
    ['6', ''],
    ['5', WITH_IOREDIS_5],
  ])('is followed by another one, of ioredis %s without a look whether it is ready', async (_, preload) => {
    const proxy = await TcpProxy.start(server.port);
    environment.add(() => proxy.stop());
    proxy.cutAfterReplyBytes(0);
    const url = { port: proxy.port, host: '127.0.0.1', enableReadyCheck: false };
    const worker = await environment.worker({ url, preload, build: 'nestjs-distributed-lock' });
    const { id } = await worker.call<{ id: number }>('acquire', 'key', { waitTime: 30_000 });
    await worker.call('release', id);
  });

  const OPTIONS = { enableReadyCheck: false, maxRetriesPerRequest: 0 };
  it.each<[string, (url: string) => object]>([
    ['6', (url) => new Redis(url, OPTIONS)],
    ['5', (url) => new Redis5(url, OPTIONS)],
  ])("is followed by another one, of the application's own client of ioredis %s", async (_, connectBy) => {
    const proxy = await TcpProxy.start(server.port);
    environment.add(() => proxy.stop());
    // For TypeScript the versions are classes of their own.
    const client = environment.clientWithListener(connectBy(proxy.url) as Redis);
    const locks = environment.service({ connection: client });
    await (await locks.acquire('key')).release();
    // As a balancer does whose server is away: it accepts, and hangs up.
    proxy.cutAfterReplyBytes(0);
    proxy.cut();
    await (await locks.acquire('key')).release();
    expect((await locks.health()).status).toBe('up');
  });
});

/** What the service tells of its connections. */
const changesOf = (locks: LockService): string[] => {
  const told: string[] = [];
  locks.events$.subscribe((event) => {
    if (event.type !== 'disconnected' && event.type !== 'reconnected') return;
    told.push(`${event.type} ${(event.error as Error | undefined)?.message ?? ''}`.trim());
  });
  return told;
};

describe('A connection in use that falls silent', () => {
  afterEach(() => {
    jest.useRealTimers();
  });

  it.each<[string, () => void]>([
    ['', () => undefined],
    [
      ', also if it was first used while timers were faked',
      () => {
        jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask'] });
      },
    ],
  ])('is given up, and the outage says for how long nothing came back%s', async (_, setTimers) => {
    const proxy = await TcpProxy.start(server.port);
    environment.add(() => proxy.stop());
    const locks = environment.service({ connection: proxy.url, leaseTime: 3_000 });
    const told = changesOf(locks);
    setTimers();
    await (await locks.acquire('key')).release();
    jest.useRealTimers();
    await (await locks.acquire('key')).release();
    proxy.dropReplies(true);
    let calls = 0;
    await until(() => {
      locks.tryAcquire(`key:${String(calls++)}`).catch(() => undefined);
      return told.length > 0;
    });
    expect(told).toEqual(['disconnected nothing came back within 1000 ms']);
    proxy.dropReplies(false);
  });
});

describe('A server that ends idle connections', () => {
  it('is no outage: the next connection follows at once', async () => {
    await server.client().config('SET', 'timeout', '1');
    const locks = environment.service({ connection: server.url });
    const told = changesOf(locks);
    const connectionsMade = async () =>
      Number(/total_connections_received:(\d+)/.exec(await server.client().info('stats'))?.[1]);
    await (await locks.acquire('key')).release();
    const before = await connectionsMade();
    await until(async () => (await connectionsMade()) > before);
    await (await locks.acquire('key')).release();
    expect(told).toEqual([]);
  });

  it('is one if none follows', async () => {
    const locks = environment.service({ connection: server.url });
    const told = changesOf(locks);
    await (await locks.acquire('key')).release();
    await sleep(1_500);
    await server.kill();
    await until(() => told.length > 0);
    expect(told).toEqual([expect.stringContaining('disconnected connect ECONNREFUSED')]);
  });

  it('is one if none is ready soon, as while the server loads its data', async () => {
    const slow = await environment.server({
      args: ['--key-load-delay', '1000', '--loading-process-events-interval-bytes', '1024'],
    });
    await slow.client().eval("for i = 1, 7000 do redis.call('SET', i, redis.sha1hex(i)) end", 0);
    await slow.client().save();
    const locks = environment.service({ connection: slow.url });
    const told = changesOf(locks);
    await (await locks.acquire('key')).release();
    await sleep(1_500);
    const restarted = slow.restart();
    await until(() => told.length > 0);
    expect(told).toEqual([expect.stringContaining('disconnected')]);
    const early = new Redis(slow.url, { enableReadyCheck: false });
    await early.config('SET', 'key-load-delay', '0');
    early.disconnect();
    await restarted;
  });
});

describe('A server that has become a replica', () => {
  it.each<[string, () => unknown]>([
    ['knows the script', () => undefined],
    ['has restarted, and knows no script', () => server.client().script('FLUSH')],
  ])('is left at its first refusal: one that %s', async (_, prepare) => {
    const locks = environment.service({ connection: server.url });
    const told = changesOf(locks);
    await (await locks.acquire('key')).release();
    await server.client().replicaof('127.0.0.1', '1');
    await prepare();
    await expect(locks.tryAcquire('key')).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    await until(() => told.length > 0);
    expect(told[0]).toContain('READONLY');
  });
});
