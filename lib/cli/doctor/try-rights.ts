import type { Redis } from 'ioredis';
import { uuid } from '../../runtime/runtime.js';
import { RESERVED } from '../../store/lock-store.js';
import type { Server } from '../../stores/redis/connection/deployment.js';
import { isWithheld, replyCode } from '../../stores/redis/connection/redis-errors.js';
import type { Right } from './rights.js';

const NO_SCRIPT = '0'.repeat(40);

/** What follows the prefix of the keys. At random, because DEL would delete the key of another program. */
const KEY = `${RESERVED}doctor:${uuid()}`;

/**
 * How each right is tried, for a key that does not exist, and channels without a subscriber. No command changes anything:
 * some have an argument too many, which the server finds after its check of the rights.
 */
const TRIES: Readonly<Record<string, (key: string) => readonly string[]>> = {
  evalsha: () => ['EVALSHA', NO_SCRIPT, '0'],
  eval: () => ['EVAL', 'return 1', '0'],
  // Reads and writes.
  '~lock:*': (key) => ['SET', key, '', 'XX', 'GET', 'none'],
  time: () => ['TIME'],
  set: (key) => ['SET', key, '', 'XX', 'GET', 'none'],
  pexpire: (key) => ['PEXPIRE', key, 'none'],
  pexpireat: (key) => ['PEXPIREAT', key, 'none'],
  hset: (key) => ['HSET', key, 'field', 'value', 'none'],
  hdel: (key) => ['HDEL', key, 'none'],
  hexists: (key) => ['HEXISTS', key, 'none'],
  zadd: (key) => ['ZADD', key, 'none', 'none'],
  zrem: (key) => ['ZREM', key, 'none'],
  zrange: (key) => ['ZRANGE', key, '0', '0'],
  zscore: (key) => ['ZSCORE', key, 'none'],
  zrank: (key) => ['ZRANK', key, 'none'],
  zremrangebyscore: (key) => ['ZREMRANGEBYSCORE', key, 'none', 'none'],
  'pubsub|numsub': () => ['PUBSUB', 'NUMSUB'],
  'pubsub|shardnumsub': () => ['PUBSUB', 'SHARDNUMSUB'],
  publish: () => ['PUBLISH', 'lock_queue__channel:doctor', ''],
  'lock_queue__channel:*': () => ['PUBLISH', 'lock_queue__channel:doctor', ''],
  spublish: () => ['SPUBLISH', 'lock_sharding', ''],
  lock_sharding: () => ['SPUBLISH', 'lock_sharding', ''],
  'redisson_lock__channel:lock:*': (key) => ['PUBLISH', `redisson_lock__channel:${key}`, ''],
  'redisson_lock__channel:{lock:*': (key) => ['PUBLISH', `redisson_lock__channel:{${key}}`, ''],
  info: () => ['INFO', 'server'],
  ping: () => ['PING'],
  scan: () => ['SCAN', '0', 'COUNT', '1'],
  'cluster|slots': () => ['CLUSTER', 'SLOTS'],
  'cluster|myid': () => ['CLUSTER', 'MYID'],
  'cluster|nodes': () => ['CLUSTER', 'NODES'],
};

/** Those that have an answer of their own kind. */
const SUBSCRIPTIONS: Readonly<Record<string, (client: Redis) => Promise<unknown>>> = {
  subscribe: (client) => client.subscribe('lock_queue__channel:doctor'),
  unsubscribe: (client) => client.unsubscribe('lock_queue__channel:doctor'),
  ssubscribe: (client) => client.ssubscribe('lock_sharding'),
  sunsubscribe: (client) => client.sunsubscribe('lock_sharding'),
};

/**
 * Which of these a user lacks, each with the refusal. Tries each of them, so refusals appear in the ACL LOG of the server.
 * @throws the error of the connection
 */
export async function refusedOf(
  server: Server,
  { of }: Right,
  keyPrefix: string,
): Promise<ReadonlyMap<string, string>> {
  const refused = new Map<string, string>();
  for (const right of of) {
    const refusal = await refusalOf(server, right, `${keyPrefix}${KEY}`);
    if (refusal !== undefined) refused.set(right, refusal);
  }
  return refused;
}

async function refusalOf(server: Server, right: string, key: string): Promise<string | undefined> {
  const [command = '', ...args] = TRIES[right]?.(key) ?? [right, key];
  const subscription = SUBSCRIPTIONS[right];
  try {
    await server.send((client) =>
      subscription === undefined ? client.call(command, ...args) : apart(client, subscription),
    );
  } catch (error) {
    if (isWithheld(error)) return isRefusalOf(right, error) ? (error as Error).message : undefined;
    // Any other answer comes from a server that lets the user do it.
    if (replyCode(error) === undefined) throw error;
  }
  return undefined;
}

/** On a connection of its own: in RESP2 one that is subscribed refuses all other commands. */
async function apart(client: Redis, subscription: (client: Redis) => Promise<unknown>): Promise<unknown> {
  const other = client.duplicate({ enableReadyCheck: false, enableOfflineQueue: true, lazyConnect: true });
  // A lost lease fails the command.
  other.on('error', () => undefined);
  try {
    await other.connect();
    // ioredis 5 settles no SSUBSCRIBE that another node would have answered. The server looks at the rights first.
    const moved = new Promise<void>((resolve) => other.once('moved', resolve));
    return await Promise.race([subscription(other), moved]);
  } finally {
    other.disconnect();
  }
}

/** A command may be refused as such, for the key or for the channel: these are rights of their own. */
function isRefusalOf(right: string, error: unknown): boolean {
  const message = error instanceof Error ? error.message : '';
  if (/\b(?:a key|the keys)\b/.test(message)) return right.startsWith('~');
  if (/\b(?:a channel|the channels)\b/.test(message)) return /channel:|sharding/.test(right);
  return !/^~|channel:|sharding/.test(right);
}
