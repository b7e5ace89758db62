import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect, promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { Redis, type RedisOptions } from 'ioredis';
import {
  LockModule,
  LockService,
  LockUnavailableError,
  type LockEvent,
  type LockModuleOptions,
  type RedisConnection,
} from '../../../../lib/index.js';
import { TestEnvironment } from '../../../support/test-environment.js';
import { runProgram } from '../../../scenarios/program.js';
import { until } from '../../../scenarios/until.js';
import type { RedisServer } from '../../../support/redis-server.js';
import { LogLines } from '../log-lines.js';
import { freePort } from '../../../support/free-port.js';
import { TcpProxy } from '../../../support/tcp-proxy.js';

/** ms: longer than any call waits, so a caller that gets the lock was woken. */
const LONG = 300_000;
/** ms: a command has two seconds then. */
const LEASE = 12_000;
const PASSWORD = 'pass-4711-word';

const environment = new TestEnvironment();

const service = (connection: RedisConnection, options: LockModuleOptions = {}): LockService =>
  environment.service({ connection, leaseTime: LONG, ...options });

afterEach(() => environment.end());

const failure = (attempt: Promise<unknown>): Promise<unknown> =>
  attempt.then(
    () => undefined,
    (error: unknown) => error,
  );

/** What the promise of exclusion needs: a cycle, and a hand-over from each service to the other. */
async function expectHandOvers(a: LockService, b: LockService): Promise<void> {
  for (const [from, to] of [
    [a, b],
    [b, a],
  ] as const) {
    const lease = await from.acquire('hand-over');
    const waiting = to.acquire('hand-over');
    await until(async () => (await to.inspect('hand-over'))?.waiters.processes === 1);
    await lease.release();
    const next = await waiting;
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
    await next.release();
    await until(async () => (await to.inspect('hand-over')) === null);
  }
}

describe('A connection given as', () => {
  let server: RedisServer;

  beforeEach(async () => {
    server = await environment.server();
  });

  describe("the user's own client", () => {
    const client = (options: RedisOptions = {}): Redis =>
      environment.clientWithListener(
        new Redis(server.url, { ...options, disconnectTimeout: 0, replyMapping: 'legacy' }),
      );

    const VARIANTS: [string, RedisOptions, keyPrefix?: string][] = [
      ['with its defaults', {}],
      ['with a keyPrefix', { keyPrefix: 'app:' }, 'app:lock:'],
      ['with a keyPrefix that has braces', { keyPrefix: '{app}:' }, '{app}:lock:'],
      ['with automatic pipelining', { enableAutoPipelining: true }],
      [
        'with automatic pipelining and a keyPrefix',
        { enableAutoPipelining: true, keyPrefix: 'p:' },
        'p:lock:',
      ],
      ['that connects when it is used', { lazyConnect: true }],
      ['with numbers as strings', { stringNumbers: true }],
      ['with RESP2', { protocol: 2 }],
      ['that does not queue', { enableOfflineQueue: false }],
    ];

    it.each(VARIANTS)(
      '%s: locks like any other, and stays as it is',
      async (_, options, keyPrefix = 'lock:') => {
        const own = client(options);
        await (own.status === 'wait' ? own.connect() : once(own, 'ready'));
        const picture = () => ({
          options: { ...own.options },
          properties: Object.getOwnPropertyNames(own).sort(),
          listeners: own.eventNames().map((event) => [event, own.listenerCount(event)]),
          status: own.status,
          mode: own.mode,
        });
        const before = picture();
        const locks = service(own);
        await expectHandOvers(locks, service(server.url, { keyPrefix }));
        const lease = await locks.acquire('key');
        expect(await server.client().hgetall(`${keyPrefix}key`)).toEqual({ [lease.owner]: '1' });
        await lease.release();
        expect(await server.client().exists(`${keyPrefix}key`, `${keyPrefix}hand-over`)).toBe(0);
        expect({ ...picture(), listeners: [] }).toEqual({ ...before, listeners: [] });
        await locks.onApplicationShutdown();
        expect(picture()).toEqual(before);
        expect(await own.ping()).toBe('PONG');
      },
    );

    it.each<[string, RegExp, (own: Redis) => Promise<Redis>]>([
      [
        'in subscriber mode',
        /subscriber mode.*pass another one, such as client\.duplicate/,
        async (own) => {
          await own.subscribe('channel');
          return own;
        },
      ],
      ['in monitor mode', /monitor mode.*pass another one/, (own) => own.monitor()],
      [
        'that is closed',
        /closed; pass one that is open/,
        async (own) => {
          await own.quit();
          return own;
        },
      ],
    ])('%s is refused at boot', async (_, message, prepare) => {
      const own = environment.client(await prepare(client({ protocol: 2 })));
      expect(() => service(own)).toThrow(message);
      expect(() => service(own)).toThrow(expect.objectContaining({ code: 'LOCK_CONFIG' }));
    });
  });
});

describe('With TLS', () => {
  let directory: string;
  let certificate: string;
  let key: string;
  let port: number;
  let server: RedisServer;

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'lock-tls-'));
    certificate = join(directory, 'certificate.pem');
    key = join(directory, 'key.pem');
    const make =
      'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost ' +
      '-addext subjectAltName=DNS:localhost,IP:127.0.0.1';
    await promisify(execFile)('openssl', [...make.split(' '), '-keyout', key, '-out', certificate]);
  });

  beforeEach(async () => {
    port = await freePort();
    const args = { 'tls-port': String(port), 'tls-cert-file': certificate, 'tls-key-file': key };
    server = await environment.server({
      args: [
        ...Object.entries(args).flatMap(([name, value]) => [`--${name}`, value]),
        '--tls-auth-clients',
        'no',
      ],
    });
  });

  afterAll(async () => {
    await rm(directory, { recursive: true });
  });

  it('options carry the authority, for messages too', async () => {
    const tls = { ca: await readFile(certificate) };
    const secure = service({ host: '127.0.0.1', port, tls });
    await expectHandOvers(secure, service(server.url));
  });

  it('a rediss URL takes the authority from the process, for messages too', async () => {
    const program = `
      const [a, b] = [1, 2].map(() => new LockService({ connection: 'rediss://127.0.0.1:${String(port)}' }));
      const lease = await a.acquire('key');
      const waiting = b.acquire('key');
      while ((await a.inspect('key')).waiters.processes === 0) await new Promise(setImmediate);
      await lease.release();
      await (await waiting).release();
      await Promise.all([a, b].map((locks) => locks.onApplicationShutdown()));
      console.log('done');
    `;
    expect(await runProgram(program, { env: { NODE_EXTRA_CA_CERTS: certificate } })).toBe('done');
  });

  it('a server with an unknown certificate is not trusted', async () => {
    const locks = service({ host: '127.0.0.1', port, tls: {} }, { leaseTime: LEASE });
    const error = await failure(locks.acquire('key', { waitTime: 5_000 }));
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(inspect(error, { depth: 5 })).toContain('self-signed');
  });
});

describe('While Redis is down', () => {
  let logs: LogLines;

  beforeEach(() => {
    logs = new LogLines();
  });

  afterEach(() => {
    logs.stop();
  });

  it('an application boots, with a line in the log at most, and gets its locks when Redis is there', async () => {
    const server = await environment.server();
    const proxy = await TcpProxy.start(server.port);
    environment.add(() => proxy.stop());
    proxy.refuse(true);
    const app = await Test.createTestingModule({ imports: [LockModule.forRoot({ connection: proxy.url })] })
      .setLogger(logs.logger)
      .compile();
    environment.add(() => app.close());
    await app.init();
    await until(() => proxy.refused > 4);
    const ofBoot = /dependencies initialized|Holds locks as/;
    expect(logs.lines.filter((line) => !ofBoot.test(line))).toHaveLength(1);
    expect(logs.lines.at(-1)).toContain(`No connection to 127.0.0.1:${String(proxy.port)}`);

    const waiting = app.get(LockService).acquire('key', { waitTime: Infinity });
    proxy.refuse(false);
    await (await waiting).release();
    await until(() => logs.lines.at(-1)?.includes('again') === true);
  });
});

describe('A password in the URL', () => {
  let server: RedisServer;
  let logs: LogLines;

  beforeEach(async () => {
    server = await environment.server({ args: ['--requirepass', 'another'] });
    logs = new LogLines();
  });

  afterEach(() => {
    logs.stop();
  });

  const url = (user = '') => `redis://${user}:${PASSWORD}@127.0.0.1:${String(server.port)}`;

  /** An error with all that it carries along, as a logger may write it down. */
  const everythingOf = (error: unknown) => inspect(error, { depth: Infinity, showHidden: true });

  it('that is wrong is nowhere inside of an error or event either, where a logger would find it', async () => {
    const events: LockEvent[] = [];
    const locks = service(url(), { leaseTime: LEASE });
    locks.events$.subscribe((event) => events.push(event));
    const error = await failure(locks.acquire('key', { waitTime: 1_000 }));
    await until(() => events.some(({ type }) => type === 'disconnected'));
    expect(everythingOf(events)).not.toContain(PASSWORD);
    expect(everythingOf(error)).not.toContain(PASSWORD);
  });

  it('of a server that goes away appears in no error and in no line of the log', async () => {
    server = await environment.server({ args: ['--requirepass', PASSWORD] });
    const locks = service(url('default'), { leaseTime: LEASE });
    const lease = await locks.acquire('key');
    await server.kill();
    const errors = await Promise.all([
      failure(locks.acquire('other', { waitTime: 500 })),
      failure(lease.extend(40_000)),
      failure(locks.inspect('key')),
    ]);
    await lease.release();
    expect(errors.every((error) => error instanceof LockUnavailableError)).toBe(true);
    await until(() => logs.lines.length >= 2);
    for (const text of [...errors.map(everythingOf), inspect(await locks.health()), ...logs.lines]) {
      expect(text).not.toContain(PASSWORD);
    }
  });
});

it('tells once that the connection for messages alone stays away, and that it is back', async () => {
  const server = await environment.server();
  const redis = server.client();
  const locks = service(server.url);
  const told: LockEvent[] = [];
  locks.events$.subscribe((event) => {
    if (event.type === 'disconnected' || event.type === 'reconnected') told.push(event);
  });
  const lease = await locks.acquire('long');
  const connections = async (...kind: string[]) =>
    String(await redis.call('CLIENT', 'LIST', ...kind))
      .trim()
      .split('\n').length;
  await until(async () => String(await redis.call('CLIENT', 'LIST', 'TYPE', 'pubsub')).includes('name='));
  await redis.config('SET', 'maxclients', (await connections()) - 1);
  await redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
  const node = expect.stringMatching(/^the messages of /) as unknown;
  await until(() => told.length > 0);
  expect(told).toMatchObject([{ type: 'disconnected', node }]);
  await redis.config('SET', 'maxclients', 100);
  await until(() => told.length > 1);
  expect(told).toMatchObject([{ type: 'disconnected' }, { type: 'reconnected', node }]);
  await lease.release();
});
