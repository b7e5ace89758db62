import { describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { isLockUnavailableError } from '../../../../lib/index.js';
import { createStore } from '../../../support/store.js';
import { describeLockStore } from '../../../../lib/testing/describe-lock-store.js';
import { TestEnvironment } from '../../../support/test-environment.js';
import { until } from '../../../scenarios/until.js';
import { createLeastUser, LEAST_PRIVILEGES } from '../../../support/acl.js';
import { RedisServer } from '../../../support/redis-server.js';
import { serverOfAll } from '../../../support/test-servers.js';

describeLockStore('single Redis server, a user with the least privileges', async () => {
  const server = await RedisServer.start();
  const user = await createLeastUser(server.client());
  return {
    open: () =>
      createStore(
        { connection: { host: '127.0.0.1', port: server.port, ...user } },
        { keyPrefix: 'lock:', leaseTime: 30_000 },
      ),
    close: () => server.stop(),
  };
});

describe('The privileges that the guide lists', () => {
  const environment = TestEnvironment.ofAll();
  const server = serverOfAll();

  /** Everything that a lock can do, as a user with these privileges. Rejects with the first thing that does not work. */
  async function everything(privileges: readonly string[]): Promise<void> {
    const redis = server.client();
    await redis.flushall();
    await redis.script('FLUSH');
    const user = await createLeastUser(redis, 'user', privileges);
    const connection = { host: '127.0.0.1', port: server.port, ...user };
    const [one, two] = [0, 1].map(() =>
      environment.service({ connection, leaseTime: 3_000, waitTime: 1_500 }),
    );

    // Names as odd as they come: with a hash tag of their own, too.
    for (const name of ['plain', '{tag}:plain', 'odd}one']) {
      const lease = await one!.acquire(name);
      await lease.extend(5_000);
      const waiting = two!.acquire(name);
      waiting.catch(() => undefined); // what comes first is what counts
      await untilSoon(async () => (await one!.inspect(name))?.waiters.processes === 1);
      await lease.release();
      await (await waiting).release();
    }
    await (await one!.acquire(['a', 'b'])).release();
    await one!.using('kept', { minHoldTime: 100 }, () => undefined);
    await one!.acquire('forced');
    await one!.forceRelease('forced');
    for (const lock of [one!.getFairLock('fair'), one!.getSemaphore('semaphore', 2)]) {
      await (await lock.acquire()).release();
    }
    // One of two holders ends by itself.
    const pool = one!.getSemaphore('pool', 2);
    const long = await pool.acquire();
    await pool.acquire({ leaseTime: 50 });
    await (await pool.acquire()).release();
    await long.release();
    const [fair, next] = [one!, two!].map((service) => service.getFairLock('queue'));
    const first = await fair!.acquire({ waitTime: 1_000 });
    await first.extend(5_000);
    const waiting = next!.acquire();
    waiting.catch(() => undefined);
    await untilSoon(async () => (await one!.inspect('queue'))?.queue.length === 1);
    await first.release();
    await (await waiting).release();
    const { read, write } = one!.getReadWriteLock('catalog');
    await write.using(() => read.using(() => undefined));
    await untilSoon(async () => (await redis.pubsub('CHANNELS', 'redisson*')).length === 0, 3_000);
    const { nodes, status } = await one!.health();
    expect(status).toBe('up');
    expect(nodes[0]).toMatchObject({ role: 'master', evictionPolicy: 'noeviction' });
    const refused = await refusals(redis, 'user');
    if (refused !== '') throw new Error(`refused: ${refused}`);
  }

  const untilSoon = (condition: () => Promise<boolean>, patience = 1_000) => until(condition, patience);

  it('are enough for everything', async () => {
    await everything(LEAST_PRIVILEGES);
  });

  it.each(LEAST_PRIVILEGES)('need %s', async (privilege) => {
    await expect(everything(LEAST_PRIVILEGES.filter((each) => each !== privilege))).rejects.toThrow();
  });

  it.each([[['+evalsha', '+eval']], [['+hset']]])(
    'without %s an acquisition fails, also of a caller that would wait for ever',
    async (privileges) => {
      const less = LEAST_PRIVILEGES.filter((each) => !privileges.includes(each));
      const user = await createLeastUser(server.client(), 'less', less);
      const locks = environment.service({ connection: { host: '127.0.0.1', port: server.port, ...user } });
      const error: unknown = await locks
        .acquire('key', { waitTime: Infinity })
        .catch((reason: unknown) => reason);
      expect(isLockUnavailableError(error) && error.permanent).toBe(true);
    },
  );
});

/** What the server has refused to a user since it was made. */
async function refusals(redis: Redis, username: string): Promise<string> {
  const log = (await redis.acl('LOG')) as string[][];
  await redis.acl('LOG', 'RESET');
  const field = (entry: string[], name: string) => entry[entry.indexOf(name) + 1] ?? '';
  return (
    log
      .filter((entry) => field(entry, 'username') === username)
      .map((entry) => field(entry, 'object'))
      // Looked at for a warning only: a node of a quorum is no single server.
      .filter((object) => !object.startsWith('client') && object !== '~ndl:quorum')
      .join()
  );
}
