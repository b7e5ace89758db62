import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Cluster, Redis } from 'ioredis';
import { Cluster as Cluster5, Redis as Redis5 } from 'ioredis-5';
import {
  isLockUnavailableError,
  type LockEvent,
  type LockService,
  type RedisConnection,
} from '../../../../lib/index.js';
import { TestEnvironment } from '../../../support/test-environment.js';
import { until } from '../../../scenarios/until.js';
import { RedisCluster } from '../../../support/redis-cluster.js';
import type { RedisServer } from '../../../support/redis-server.js';

const PASSWORD = 'pass-4711-word';
const environment = new TestEnvironment();
let server: RedisServer;
let printed: string[];

beforeEach(async () => {
  printed = [];
  jest
    .spyOn(console, 'error')
    .mockImplementation((...parts: unknown[]) => void printed.push(parts.join(' ')));
  server = await environment.server();
});

afterEach(async () => {
  jest.restoreAllMocks();
  await environment.end();
});

interface Credentials {
  username?: string;
  password?: string;
}

const service = (connection: RedisConnection) => environment.service({ connection });
const addressOf = (credentials: object) => ({
  host: '127.0.0.1',
  port: server.port,
  disconnectTimeout: 0,
  ...credentials,
});

/** The client of an application: for TypeScript the versions are classes of their own. */
const clientOf = (client: object) => environment.client(client as Redis);

const hears = (client: Redis): Redis => client.on('error', () => undefined);

const urlOf = ({ username = '', password = '' }: Credentials) => {
  const user = username + password === '' ? '' : `${username}:${password}@`;
  return `redis://${user}127.0.0.1:${String(server.port)}`;
};

const WAYS: [string, (credentials: Credentials) => RedisConnection][] = [
  ['a URL', urlOf],
  ['options', addressOf],
  ['options with RESP2', (credentials) => addressOf({ ...credentials, protocol: 2 })],
  ['a client', (credentials) => hears(clientOf(new Redis(addressOf(credentials))))],
  ['a client that hears no errors', (credentials) => clientOf(new Redis(addressOf(credentials)))],
  [
    'a client that queues nothing',
    (credentials) => hears(clientOf(new Redis(addressOf({ ...credentials, enableOfflineQueue: false })))),
  ],
  ['a client of ioredis 5', (credentials) => hears(clientOf(new Redis5(addressOf(credentials))))],
  [
    'a client of ioredis 5 that hears no errors',
    (credentials) => clientOf(new Redis5(addressOf(credentials))),
  ],
];

const CASES: [string, RegExp, Credentials, prepare: () => Promise<unknown>, mend: () => Promise<unknown>][] =
  [
    [
      'a wrong password',
      /WRONGPASS/,
      { username: 'app', password: 'wrong' },
      () => acl('app', 'on', `>${PASSWORD}`, '~*', '&*', '+@all'),
      () => acl('app', '>wrong'),
    ],
    [
      'a user that is not there',
      /WRONGPASS/,
      { username: 'nobody', password: PASSWORD },
      async () => undefined,
      () => acl('nobody', 'on', `>${PASSWORD}`, '~*', '&*', '+@all'),
    ],
    [
      'a user that is switched off',
      /WRONGPASS/,
      { username: 'app', password: PASSWORD },
      () => acl('app', 'off', `>${PASSWORD}`, '~*', '&*', '+@all'),
      () => acl('app', 'on'),
    ],
    [
      'no password where one is needed',
      /NOAUTH/,
      {},
      () => server.client().config('SET', 'requirepass', PASSWORD),
      () => server.client().config('SET', 'requirepass', ''),
    ],
  ];

const acl = (user: string, ...rules: string[]) => server.client().call('ACL', 'SETUSER', user, ...rules);

/** What an acquisition is refused with, which would wait for ever. */
async function refusal(locks: LockService): Promise<Error> {
  const error: unknown = await locks
    .acquire('key', { waitTime: Infinity })
    .catch((reason: unknown) => reason);
  if (!isLockUnavailableError(error)) throw new Error('it was acquired', { cause: error });
  expect(error).toMatchObject({ permanent: true, effect: 'refused' });
  expect(inspect(error, { depth: Infinity, showHidden: true })).not.toContain(PASSWORD);
  return error.cause as Error;
}

describe.each(CASES)('A connection with %s', (_, reason, credentials, prepare, mend) => {
  it.each(WAYS)(
    'as %s is refused at once and for good, and used once that is mended',
    async (_way, connect) => {
      await prepare();
      const locks = service(connect(credentials));
      const events: LockEvent[] = [];
      locks.events$.subscribe((event) => events.push(event));
      expect((await refusal(locks)).message).toMatch(reason);
      // The same while the client waits to try again.
      expect((await refusal(locks)).message).toMatch(reason);
      const { status, nodes } = await locks.health();
      expect([status, nodes[0]?.error]).toEqual(['down', expect.stringMatching(reason)]);
      await until(() => events.some(({ type }) => type === 'disconnected'));
      const [told] = events.filter(({ type }) => type === 'disconnected');
      expect(told).toMatchObject({
        error: expect.objectContaining({ message: expect.stringMatching(reason) }),
      });

      await mend();
      await until(async () => (await locks.health()).status === 'up');
      await (await locks.acquire('key')).release();
    },
  );
});

describe('The errors of a client of the application', () => {
  const VERSIONS = [
    ['6', () => new Redis(urlOf({ username: 'nobody', password: PASSWORD }), { lazyConnect: true })],
    ['5', () => new Redis5(urlOf({ username: 'nobody', password: PASSWORD }), { lazyConnect: true })],
  ] as const;

  it.each(VERSIONS)('of ioredis %s are printed by ioredis as long as it hears none', async (_, make) => {
    const own = clientOf(make());
    const locks = [service(own), service(own)];
    await Promise.all(locks.map(refusal));
    // Once for each time that the client has tried.
    expect(printed).not.toEqual([]);
    for (const line of printed)
      expect(line).toMatch(/^\[ioredis\] Unhandled error event: ReplyError: WRONGPASS/);
    const heard: Error[] = [];
    own.on('error', (error: Error) => heard.push(error));
    const before = printed.length;
    await until(() => heard.length > 0);
    expect(printed).toHaveLength(before);
    // As it was: it is not ours to shorten.
    expect(heard[0]).toHaveProperty('command');
  });
});

it('A cluster refuses just as clearly, and is shared just as well', async () => {
  const cluster = await RedisCluster.start();
  environment.add(() => cluster.stop());
  for (const node of cluster.servers) await node.client().config('SET', 'requirepass', PASSWORD);
  const shared = (made: object) => made as Cluster;
  const [six, five] = [new Cluster(cluster.addresses), new Cluster5(cluster.addresses)].map(shared);
  for (const own of [six!, five!]) {
    clientOf(own);
    own.on('error', () => undefined);
  }
  const ways: RedisConnection[] = [{ cluster: cluster.addresses }, six!, five!];
  for (const connection of ways) {
    const locks = service(connection);
    expect((await refusal(locks)).message).toContain('NOAUTH');
    const { status, nodes } = await locks.health();
    expect([status, nodes[0]?.error]).toEqual(['down', expect.stringContaining('NOAUTH')]);
  }

  for (const node of cluster.servers) await node.client().config('SET', 'requirepass', '');
  for (const own of [six!, five!]) {
    await until(() => own.status === 'ready');
    const services = Array.from({ length: 11 }, () => service(own));
    const lease = await services[0]!.acquire('key');
    const waiting = services.map((locks) => locks.acquire('key'));
    // The one that holds it takes a place with its release.
    await until(async () => (await services[0]!.inspect('key'))?.waiters.processes === 10);
    for (const client of [own, ...own.nodes()]) {
      for (const event of client.eventNames()) expect(client.listenerCount(event)).toBeLessThan(10);
    }
    await lease.release();
    await Promise.all(waiting.map((each) => each.then((got) => got.release())));
  }
});

it('what is released while the password is refused is free once it is mended, not at the end of the lease', async () => {
  const locks = environment.service({ connection: urlOf({}), leaseTime: 300_000 });
  const leases = [await locks.acquire('plain'), await locks.getFairLock('fair').acquire()];
  const waiting = locks.getFairLock('fair').acquire({ waitTime: 60_000 });
  await until(async () => (await locks.inspect('fair'))?.queue.length === 1);

  const admin = server.client();
  await admin.config('SET', 'requirepass', PASSWORD);
  for (const type of ['normal', 'pubsub']) await admin.call('CLIENT', 'KILL', 'SKIPME', 'yes', 'TYPE', type);
  await until(async () => (await locks.health()).status === 'down');
  await Promise.all(leases.map((lease) => lease.release()));
  await waiting.catch(() => undefined);
  await admin.config('SET', 'requirepass', '');
  await until(async () => (await locks.inspect('plain').catch(() => undefined)) === null);
  await until(async () => (await locks.inspect('fair')) === null);
});
