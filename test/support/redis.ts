import { once } from 'node:events';
import type { Redis } from 'ioredis';
import { assertionClient } from './assertion-client.js';
import { CURE, RedisServer, serverProgram } from './redis-server.js';

/** A Redis for one test file. By the `process` way it is a RedisServer, which can also be frozen and killed. */
export interface TestRedis {
  readonly url: string;
  readonly via: 'url' | 'process' | 'container';
  /** For assertions: always the same connection. */
  client(): Redis;
  stop(): Promise<void>;
}

/**
 * The first of these that there is: the server that REDIS_URL names, a server program on the PATH, a Docker engine.
 * LOCK_TEST_REDIS (`process` or `container`) asks for one of the last two.
 */
export async function startRedis(): Promise<TestRedis> {
  const { REDIS_URL, LOCK_TEST_REDIS } = process.env;
  if (LOCK_TEST_REDIS === 'process') return await RedisServer.start();
  if (LOCK_TEST_REDIS === 'container') return await startContainer();
  if (REDIS_URL !== undefined) return await useServer(REDIS_URL);
  if (serverProgram() !== undefined) return await RedisServer.start();
  try {
    return await startContainer();
  } catch (cause) {
    throw new Error(`No Redis to test with. ${CURE} Or start a Docker engine, or set REDIS_URL.`, { cause });
  }
}

async function startContainer(): Promise<TestRedis> {
  // Loaded here, because it takes longer than most test files.
  const { RedisContainer } = await import('@testcontainers/redis');
  const container = await new RedisContainer(process.env.LOCK_TEST_REDIS_IMAGE ?? 'redis:7-alpine')
    // The connections that Docker passes on come from another address, which protected mode refuses.
    .withCommand(['redis-server', '--protected-mode', 'no', '--save', '', '--appendonly', 'no'])
    .start();
  const url = container.getConnectionUrl();
  const client = assertionClient(url);
  return {
    url,
    via: 'container',
    client: () => client,
    stop: async () => {
      client.disconnect();
      await container.stop();
    },
  };
}

/**
 * Somebody's server. Test files that run at the same time count down from database 15, or from the one that the URL
 * names, to one of their own each. It has to be empty, so that nothing but what tests have written is ever flushed.
 */
async function useServer(given: string): Promise<TestRedis> {
  const url = new URL(given);
  const first = Number(url.pathname.slice(1) || 15);
  const database = (first + 17 - Number(process.env.JEST_WORKER_ID ?? 1)) % 16;
  url.pathname = String(database);
  const client = assertionClient(url.href);
  // Rejects with the first error, where a command would wait for a server that never comes.
  await once(client, 'ready').catch((cause: unknown) => {
    client.disconnect();
    throw new Error(`REDIS_URL leads to no server that can be used: ${String(cause)}`, { cause });
  });
  const stop = async () => {
    await client.flushdb();
    client.disconnect();
  };
  if ((await client.dbsize()) > 0 && (await client.exists(MARK)) === 0) {
    client.disconnect();
    throw new Error(
      `Database ${String(database)} of REDIS_URL is not empty, and tests would flush it. ` +
        'Flush it yourself, or name another in the URL: redis://host:port/<database>.',
    );
  }
  await client
    .multi()
    .flushdb()
    .set(MARK, 'The tests of nestjs-distributed-lock flush this database.')
    .exec();
  return { url: url.href, via: 'url', client: () => client, stop };
}

/** Says that what a database holds is left over from tests that were interrupted. */
const MARK = 'nestjs-distributed-lock:tests';
