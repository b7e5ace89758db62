import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { LockKindMismatchError, LockUnavailableError, type LockService } from '../../../../lib/index.js';
import { TestEnvironment } from '../../../support/test-environment.js';
import { until } from '../../../scenarios/until.js';
import type { RedisServer } from '../../../support/redis-server.js';
import { fenceOf, lockKeys } from '../../../support/keys.js';

const LEASE = 12_000;
const WAIT = 1_000;

/** Ends a bad state. */
type Cure = () => Promise<unknown>;

/** A state, what Redis answers in it (nothing, in the first two), how to get there, and the server's arguments. */
type State = [state: string, code: string, enter: (server: RedisServer) => Promise<Cure>, args?: string[]];

const STATES: State[] = [
  [
    'is down',
    '',
    async (server) => {
      await server.kill();
      return () => server.restart();
    },
  ],
  [
    'is frozen',
    '',
    async (server) => {
      server.freeze();
      return async () => {
        server.thaw();
      };
    },
  ],
  [
    'is out of memory',
    'OOM',
    async (server) => {
      await server.client().config('SET', 'maxmemory', '1');
      return () => server.client().config('SET', 'maxmemory', '0');
    },
  ],
  [
    'is a replica',
    'READONLY',
    async (server) => {
      await server.client().replicaof('127.0.0.1', 1);
      return () => server.client().replicaof('NO', 'ONE');
    },
  ],
  [
    'is a replica without its master',
    'MASTERDOWN',
    async (server) => {
      await server.client().config('SET', 'replica-serve-stale-data', 'no');
      await server.client().replicaof('127.0.0.1', 1);
      return () => server.client().replicaof('NO', 'ONE');
    },
  ],
  [
    'misses its replicas',
    'NOREPLICAS',
    async (server) => {
      await server.client().config('SET', 'min-replicas-to-write', '1');
      return () => server.client().config('SET', 'min-replicas-to-write', '0');
    },
  ],
  [
    'has no room for another client',
    '',
    async (server) => {
      await server.client().config('SET', 'maxclients', '1');
      await server.client().call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      return () => server.client().config('SET', 'maxclients', '10000');
    },
  ],
  [
    'runs an endless script',
    'BUSY',
    async (server) => {
      await server.client().config('SET', 'lua-time-limit', '50');
      const looping = server.client().duplicate();
      looping.eval('while true do end', 0).catch(() => undefined);
      await until(async () => (await answer(server.client().get('any'))).startsWith('BUSY'));
      return async () => {
        looping.disconnect();
        await server.client().script('KILL');
      };
    },
  ],
  [
    'cannot save',
    'MISCONF',
    async (server) => {
      const [, directory = ''] = await server.client().config('GET', 'dir');
      // No file can take a directory's place.
      await mkdir(join(directory, 'dump.rdb'));
      await server.client().config('SET', 'save', '3600 1');
      await server.client().bgsave();
      await until(async () => (await answer(server.client().set('any', ''))).startsWith('MISCONF'));
      return () => server.client().config('SET', 'stop-writes-on-bgsave-error', 'no');
    },
  ],
  [
    'loads its data',
    'LOADING',
    async (server) => {
      await server.client().eval("for i = 1, 7000 do redis.call('SET', i, redis.sha1hex(i)) end", 0);
      await server.client().save();
      const restarted = server.restart();
      // It connects at once, where other clients wait until the data is there.
      const early = new Redis(server.url, { enableReadyCheck: false, retryStrategy: () => 10 });
      early.on('error', () => undefined);
      await until(async () => (await answer(early.get('any'))).startsWith('LOADING'));
      return async () => {
        await early.config('SET', 'key-load-delay', '0');
        early.disconnect();
        await restarted;
      };
    },
    ['--key-load-delay', '1000', '--loading-process-events-interval-bytes', '1024'],
  ],
];

/** The text of a reply, also of an error. */
const answer = (reply: Promise<unknown>): Promise<string> =>
  reply.then(String, (error: unknown) => (error as Error).message);

const failure = async (attempt: () => Promise<unknown>): Promise<{ error: unknown; after: number }> => {
  const asked = performance.now();
  const error: unknown = await attempt().then(
    (value) => ({ unexpected: value }),
    (reason: unknown) => reason,
  );
  return { error, after: performance.now() - asked };
};

describe.each(STATES)('When Redis %s', (_, code, enter, args = []) => {
  const environment = TestEnvironment.ofEach();
  let server: RedisServer;
  let locks: LockService;
  let onClient: LockService;

  beforeEach(async () => {
    server = await environment.server({ args });
    locks = environment.service({ connection: server.url, leaseTime: LEASE, waitTime: WAIT });
    // As careless as a user's client can be: it queues, sends again, and talks to a server that is not ready.
    const client = environment.clientWithListener(
      new Redis(server.url, { enableReadyCheck: false, maxRetriesPerRequest: null }),
    );
    onClient = environment.service({ connection: client, leaseTime: LEASE, waitTime: WAIT });
    for (const service of [locks, onClient])
      await (await service.acquire('secret-name', { waitTime: 60_000 })).release();
  });

  it('no caller gets a lock or is told that it is busy, all are answered, and it works again afterwards', async () => {
    const cure = await enter(server);
    const health = locks.health();
    const trying = [() => locks.tryAcquire('secret-1'), () => onClient.tryAcquire('secret-2')].map(failure);
    const waiting = [
      () => locks.acquire('secret-3'),
      () => onClient.acquire('secret-4'),
      () => locks.using('secret-5', () => 'ran'),
      () => onClient.using('secret-6', () => 'ran'),
    ].map(failure);
    await Promise.all(trying);
    // A caller that waits may still be lucky, so none is sent away early.
    for (const { after } of await Promise.all(waiting)) expect(after).toBeGreaterThan(WAIT - 10);
    // What is held is kept where only memory is short.
    expect((await health).status).toBe(code === 'OOM' ? 'degraded' : 'down');
    const errors = await Promise.all([...trying, ...waiting].map(async (attempt) => (await attempt).error));
    for (const error of errors) {
      expect(error).toBeInstanceOf(LockUnavailableError);
      const { message, status, expose, key } = error as LockUnavailableError;
      expect({ status, expose }).toEqual({ status: 503, expose: true });
      expect(key).toMatch(/^secret-\d$/);
      expect(message).not.toMatch(/secret|lock:|127|localhost|redis|eval|script|[\da-f]{8}-/i);
      expect(message).not.toContain(String(server.port));
    }
    expect((errors[1] as LockUnavailableError).cause).toMatchObject({
      message: expect.stringMatching(code === '' ? /./ : new RegExp(`^${code} `)),
    });

    const patient = [locks, onClient].map((service) => service.acquire('secret-name', { waitTime: 60_000 }));
    expect(await Promise.race([...patient, sleep(300, 'nothing')])).toBe('nothing');
    await cure();
    const lease = await Promise.race(patient);
    expect(lease.held).toBe(true);
    expect(await server.client().hgetall('lock:secret-name')).toEqual({ [lease.owner]: '1' });
    await lease.release();
    for (const other of await Promise.all(patient)) await other.release();
    await until(async () => (await locks.health()).status === 'up');
    // Whatever was asked for in vain has been taken back.
    await until(async () => (await lockKeys(server.client())).length === 0);
    expect(await onClient.using('secret-1', { waitTime: 60_000 }, () => 'ran')).toBe('ran');
  });
});

describe('When the name belongs to something else', () => {
  const environment = TestEnvironment.ofAll();
  let server: RedisServer;
  let redis: Redis;
  let locks: LockService;

  beforeAll(async () => {
    server = await environment.server();
    redis = server.client();
    locks = environment.service({ connection: server.url });
  });

  it('a kind that the store names cannot forge a line of a log, nor end the quotation', async () => {
    await redis.zadd('lock:forged', Date.now() + 60_000, 'xother:1');
    await redis.pexpire('lock:forged', 60_000);
    await redis.set(fenceOf('lock:forged'), '1 other:1 fair\u001b[2J"\u0007\u2028 1');
    const attempts = [() => locks.acquire('forged'), () => locks.getFairLock('forged').acquire()];
    for (const attempt of attempts) {
      const error: unknown = await attempt().catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(LockKindMismatchError);
      expect((error as Error).message).toContain('holds a fair\\u001b[2J\\"\\u0007\\u2028 lock under');
    }
  });
});
