import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Command, Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis-5';
import {
  isLockUnavailableError,
  type LockEvent,
  type LockService,
  type RedisConnection,
} from '../../../lib/index.js';
import { TestEnvironment } from '../../support/test-environment.js';
import { until } from '../../scenarios/until.js';
import { createLeastUser } from '../../support/acl.js';
import { RedisCluster } from '../../support/redis-cluster.js';
import type { RedisServer } from '../../support/redis-server.js';
import { first } from '../../support/tier.js';

const environment = new TestEnvironment();
let server: RedisServer;

beforeEach(async () => {
  server = await environment.server();
  jest.spyOn(console, 'error').mockImplementation(() => undefined); // ioredis, where a client has no listener
});

afterEach(async () => {
  jest.restoreAllMocks();
  await environment.end();
});

const at = (options: object) => ({ host: '127.0.0.1', port: server.port, ...options });
const service = (connection: RedisConnection) => environment.service({ connection, leaseTime: 6_000 });
const allow = (...rules: string[]) => server.client().call('ACL', 'SETUSER', 'locks', ...rules);

/** The client of an application: for TypeScript the two versions are two classes. */
const clientOf = (client: Redis | Redis5) => environment.clientWithListener(client as Redis);

/** Those that are not empty. */
const databases = async () => (await server.client().info('keyspace')).match(/^db\d+/gm) ?? [];

/** What an acquisition is refused with, which would wait for ever. */
async function refusal(locks: LockService): Promise<string> {
  const error: unknown = await locks
    .acquire('refused', { waitTime: Infinity })
    .catch((reason: unknown) => reason);
  if (!isLockUnavailableError(error)) throw new Error('it was acquired', { cause: error });
  expect(error).toMatchObject({ permanent: true, effect: 'refused' });
  return (error.cause as Error).message;
}

/** The ways in which a connection says who it is, and which database it wants. */
const WAYS: [string, (user: { username: string; password: string }, db: number) => RedisConnection][] = [
  ['options', (user, db) => at({ ...user, db })],
  [
    'a URL',
    ({ username, password }, db) =>
      `redis://${username}:${password}@127.0.0.1:${String(server.port)}/${String(db)}`,
  ],
  ['a client of ioredis 5', (user, db) => clientOf(new Redis5(at({ ...user, db })))],
  ['a client', (user, db) => clientOf(new Redis(at({ ...user, db })))],
  ['a client over RESP2', (user, db) => clientOf(new Redis(at({ ...user, db, protocol: 2 })))],
  [
    'a client of ioredis 5 that does not look whether it is ready',
    (user, db) => clientOf(new Redis5(at({ ...user, db, enableReadyCheck: false, disableClientInfo: true }))),
  ],
];

describe.each(first(3, WAYS))('A database other than 0, through %s', (_, connect) => {
  it('has locks of its own', async () => {
    const user = await createLeastUser(server.client());
    await allow('+select');
    const [one, two, zero] = [1, 1, 0].map((db) => service(connect(user, db)));
    const lease = await one!.acquire('order:7');
    expect(await two!.tryAcquire('order:7')).toBeNull();
    const other = await zero!.acquire('order:7', { waitTime: 0 });
    expect(await one!.health()).toMatchObject({ status: 'up' });
    const waiting = two!.acquire('order:7');
    await until(async () => (await one!.inspect('order:7'))?.waiters.processes === 1);
    await lease.release();
    await (await waiting).release();
    await other.release();
  });

  it('is not there for a user that may not select it: no lock is taken anywhere, and health says so', async () => {
    const user = await createLeastUser(server.client());
    const locks = service(connect(user, 1));
    const events: LockEvent[] = [];
    locks.events$.subscribe((event) => events.push(event));
    expect(await refusal(locks)).toMatch(/^the connection is not on database 1: NOPERM.*select/);
    expect(await locks.health()).toMatchObject({
      status: 'down',
      nodes: [{ error: expect.stringContaining('not on database 1') }],
    });
    expect(await databases()).toEqual([]);
    expect(events.filter(({ type }) => type === 'disconnected')).toHaveLength(1);

    await allow('+select');
    await (await locks.acquire('order:7')).release();
    expect(await locks.health()).toMatchObject({ status: 'up' });
    expect(events.filter(({ type }) => type === 'reconnected')).toHaveLength(1);
    expect(await databases()).toEqual(['db1']);
  });

  it('is not there when the right to select it is taken away and the connection is renewed', async () => {
    const user = await createLeastUser(server.client());
    await allow('+select');
    const locks = service(connect(user, 1));
    const lease = await locks.acquire('order:7');
    await allow('-select');
    await server.client().call('CLIENT', 'KILL', 'USER', 'locks');
    await until(async () => (await locks.health()).nodes[0]?.error?.includes('not on database 1') === true);
    expect(await refusal(locks)).toContain('NOPERM');
    expect(await databases()).toEqual(['db1']);

    await allow('+select');
    await lease.extend(6_000);
    await lease.release();
    expect(await locks.tryAcquire('order:7')).not.toBeNull();
  });

  it('is not there when it is out of range', async () => {
    const user = await createLeastUser(server.client());
    await allow('+select');
    expect(await refusal(service(connect(user, 99)))).toMatch(/not on database 99: ERR.*out of range/);
    expect(await databases()).toEqual([]);
  });
});

/** By the version of ioredis, and whether it pipelines by itself. */
const CLIENTS: [string, (options?: object) => Redis][] = [
  ['ioredis 6', (options) => clientOf(new Redis(server.url, { ...options }))],
  [
    'ioredis 5 that pipelines by itself',
    (options) => clientOf(new Redis5(server.url, { ...options, enableAutoPipelining: true })),
  ],
  ['ioredis 5', (options) => clientOf(new Redis5(server.url, { ...options }))],
  [
    'ioredis 6 that pipelines by itself',
    (options) => clientOf(new Redis(server.url, { ...options, enableAutoPipelining: true })),
  ],
];

describe.each(first(2, CLIENTS))('A client of the application, %s,', (_, connect) => {
  it('that is switched to another database has no locks there, and has them again when it is back', async () => {
    const own = connect();
    const locks = service(own);
    const lease = await locks.acquire('held');
    await own.select(2);
    expect(await refusal(locks)).toContain('switched its client to database 2');
    expect(await locks.health()).toMatchObject({ status: 'down' });
    await own.select(0);
    await lease.extend(6_000);
    await (await locks.acquire('order:7')).release();
    await lease.release();
    expect(await databases()).toEqual(['db0']);
    expect(own.condition?.select).toBe(0);
  });

  it.each<[string, (own: Redis, database: number) => Promise<unknown>]>([
    ["call('select')", (own, database) => own.call('select', String(database))],
    [
      'sendCommand',
      (own, database) => Promise.resolve(own.sendCommand(new Command('select', [String(database)]))),
    ],
    ['a pipeline', (own, database) => own.pipeline().call('select', database).exec()],
    ['a transaction', (own, database) => own.multi().select(database).exec()],
    [
      'a transaction step by step',
      async (own, database) => {
        await own.call('MULTI');
        await own.call('select', database);
        await own.call('EXEC');
      },
    ],
  ])('that is switched by %s has no locks there, and has them again when it is back', async (_, change) => {
    const own = connect();
    const locks = service(own);
    const lease = await locks.acquire('held');
    await change(own, 2);
    await own.set('key', 'value');
    expect(await refusal(locks)).toContain('switched its client to database 2');
    expect(await locks.health()).toMatchObject({ status: 'down' });
    expect(await own.get('key')).toBe('value');
    await change(own, 0);
    await lease.extend(6_000);
    await (await locks.acquire('order:7')).release();
    await lease.release();
    expect(await databases()).toEqual(['db0', 'db2']);
  });

  it('is never switched by the locks, and a lock under way at that moment is not taken for one', async () => {
    const own = connect();
    const locks = service(own);
    await (await locks.acquire('first')).release();
    const attempt = locks.acquire('order:7', { waitTime: 0 }).catch((error: unknown) => error);
    await own.select(2);
    await own.set('key', 'value');
    expect(isLockUnavailableError(await attempt)).toBe(true);
    await locks.health();
    expect(await own.get('key')).toBe('value');
    own.disconnect(true);
    await once(own, 'ready');
    await locks.health();
    expect(await own.get('key')).toBe('value');
  });
});

it('A cluster, which has database 0 only, has no lock for options that name another', async () => {
  const cluster = await RedisCluster.start();
  environment.add(() => cluster.stop());
  const locks = service({ cluster: cluster.addresses, options: { redisOptions: { db: 1 } } });
  expect(await refusal(locks)).toMatch(/not on database 1: ERR/);
});
