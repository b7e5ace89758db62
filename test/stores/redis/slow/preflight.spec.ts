import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { Redis, type RedisOptions } from 'ioredis';
import { LockModule, LockService, type LockEvent, type RedisConnection } from '../../../../lib/index.js';
import { TestEnvironment } from '../../../support/test-environment.js';
import { createLeastUser } from '../../../support/acl.js';
import { runProgram } from '../../../scenarios/program.js';
import { until } from '../../../scenarios/until.js';
import { LogLines } from '../log-lines.js';

type Warning = Extract<LockEvent, { type: 'warning' }>;

describe('Preflight', () => {
  const environment = new TestEnvironment();
  let logs: LogLines;

  beforeEach(() => {
    logs = new LogLines();
  });

  afterEach(async () => {
    logs.stop();
    await environment.end();
  });

  const boot = async (connection: RedisConnection) => {
    const imports = [LockModule.forRoot({ connection, leaseTime: 12_000 })];
    const logger = { ...logs.logger, log: () => undefined };
    const app = await Test.createTestingModule({ imports }).setLogger(logger).compile();
    environment.add(() => app.close());
    const locks = app.get(LockService);
    const warnings: Warning[] = [];
    locks.events$.subscribe((event) => {
      if (event.type === 'warning') warnings.push(event);
    });
    await app.init();
    return { locks, warnings };
  };

  const clientOf = (url: string, options: RedisOptions = {}): Redis =>
    environment.clientWithListener(
      new Redis(url, {
        autoResendUnfulfilledCommands: false,
        reconnectOnError: () => false,
        ...options,
        replyMapping: 'legacy',
      }),
    );

  const warned = async (locks: LockService) => (await locks.health()).warnings.map(({ code }) => code);
  const linesOf = (text: string) => logs.lines.filter((line) => line.includes(text));

  it('is silent about a server that is set up well', async () => {
    const server = await environment.server();
    const { locks, warnings } = await boot(server.url);
    await locks.acquire('a');
    expect(await warned(locks)).toEqual([]);
    expect(warnings).toEqual([]);
    expect(logs.lines).toEqual([]);
  });

  it.each(['allkeys-lru', 'volatile-ttl'])('warns of the eviction policy %s, once', async (policy) => {
    const server = await environment.server({ args: ['--maxmemory-policy', policy] });
    const { locks, warnings } = await boot(server.url);
    // By itself: nobody has asked for anything.
    await until(() => warnings.length > 0);
    const node = `127.0.0.1:${String(server.port)}`;
    expect(warnings).toEqual([
      { type: 'warning', code: 'eviction-policy', node, message: expect.stringContaining(policy) },
    ]);
    expect(warnings[0]?.message).toMatch(/Set maxmemory-policy to noeviction/);

    expect(await warned(locks)).toEqual(['eviction-policy']);
    await server.restart();
    await until(async () => (await locks.health()).status === 'up');
    expect(await warned(locks)).toEqual(['eviction-policy']);
    expect(warnings).toHaveLength(1);
    expect(linesOf(policy)).toHaveLength(1);
    // Locks are given out all the same.
    expect(await locks.using('a', () => 'held')).toBe('held');

    await server.client().config('SET', 'maxmemory-policy', 'noeviction');
    expect(await warned(locks)).toEqual([]);
  });

  it('warns of a replica', async () => {
    const server = await environment.server();
    const replica = await environment.server({ args: ['--replicaof', '127.0.0.1', String(server.port)] });
    const { locks, warnings } = await boot(replica.url);
    await until(() => warnings.length > 0);
    expect(warnings).toMatchObject([
      { code: 'replica', message: expect.stringMatching(/Connect to its master/) },
    ]);
    expect(await warned(locks)).toEqual(['replica']);
    expect(linesOf('is a replica')).toHaveLength(1);
  });

  it('warns of a direct connection to a server that sentinels watch, with the least rights, and quietly not without', async () => {
    const server = await environment.server();
    // As each sentinel does.
    const sentinel = clientOf(server.url);
    await sentinel.subscribe('__sentinel__:hello');
    const { username, password } = await createLeastUser(server.client());
    const url = server.url.replace('//', `//${username}:${password}@`);
    const { locks, warnings } = await boot(url);
    await until(() => warnings.length > 0);
    expect(warnings).toMatchObject([
      {
        code: 'direct-connection',
        message: expect.stringMatching(/watched by 1 sentinel, .*Connect with \{/),
      },
    ]);
    await server.client().acl('SETUSER', username, '-pubsub');
    expect(await warned(locks)).toEqual([]);
    expect(logs.lines).toHaveLength(1);
  });

  it.each<[string, RedisOptions, RegExp]>([
    ['resend', { autoResendUnfulfilledCommands: true }, /Set autoResendUnfulfilledCommands to false/],
    ['retry-strategy', { retryStrategy: null }, /Set retryStrategy/],
    ['reconnect-on-error', { reconnectOnError: null }, /READONLY.*Set reconnectOnError to \(error\) =>/],
    [
      'failover-detector',
      { sentinels: [{ host: '127.0.0.1', port: 1 }], name: 'locks', sentinelCommandTimeout: 1_000 },
      /Set failoverDetector to true/,
    ],
    [
      'sentinel-command-timeout',
      {
        sentinels: [{ host: '127.0.0.1', port: 1 }],
        name: 'locks',
        failoverDetector: true,
        sentinelReconnectStrategy: () => 100,
      },
      /Set sentinelCommandTimeout/,
    ],
    [
      'sentinel-reconnect',
      {
        sentinels: [{ host: '127.0.0.1', port: 1 }],
        name: 'locks',
        failoverDetector: true,
        sentinelCommandTimeout: 1_000,
      },
      /Set sentinelReconnectStrategy/,
    ],
  ])("warns of a user's client: %s", async (code, options, message) => {
    const server = await environment.server();
    const { locks } = await boot(clientOf(server.url, { commandTimeout: 5_000, ...options }));
    expect((await locks.health()).warnings).toMatchObject([
      { code, message: expect.stringMatching(message) },
    ]);
  });

  it('looks when the server is there, however late, and again at the server after a reconnection', async () => {
    const server = await environment.server();
    await server.kill();
    const { locks, warnings } = await boot(server.url);
    expect(await locks.health()).toMatchObject({ status: 'down', warnings: [] });
    await server.restart();
    await until(async () => (await locks.health()).status === 'up');
    await server.kill();
    // Another one in its place. Nobody asks.
    await environment.server({ port: server.port, args: ['--maxmemory-policy', 'allkeys-lfu'] });
    await until(() => warnings.length > 0);
    expect(warnings).toMatchObject([{ code: 'eviction-policy' }]);
  });

  // A rejection that nobody handles ends a process.
  it.each([
    ['the service is shut down at once', `await locks.onApplicationShutdown();`],
    ['the service is shut down while it looks', `await connected; await locks.onApplicationShutdown();`],
    [
      'the server freezes and dies while it looks',
      `await connected;
       process.kill(pid, 'SIGSTOP');
       await sleep(100);
       process.kill(pid, 'SIGKILL');
       await sleep(500);
       await locks.onApplicationShutdown();`,
    ],
  ])('harms no process when %s', async (_, rest) => {
    const server = await environment.server({ args: ['--maxmemory-policy', 'allkeys-lru'] });
    const output = await runProgram(
      `import { setTimeout as sleep } from 'node:timers/promises';
       import { once } from 'node:events';
       import { Redis } from 'ioredis';
       const pid = ${String(server.pid)};
       const client = new Redis('${server.url}');
       client.on('error', () => undefined);
       const connected = once(client, 'ready');
       const locks = new LockService({ connection: client, leaseTime: 12_000 });
       ${rest}
       client.disconnect();
       console.log('\\nunharmed');`,
    );
    expect(output.split('\n').at(-1)).toBe('unharmed');
  });
});
