import type { Redis } from 'ioredis';
import { LockConfigError } from '../lock.errors.js';
import type { LockModuleOptions, RedisConnection as ConnectionOption } from '../lock.options.js';
import type { LockStore } from './lock-store.js';
import { MemoryLockStore } from './memory/memory-lock-store.js';
import { commandClient, nodeName, subscriberClient } from './redis/clients.js';
import { clientWarnings } from './redis/client-settings.js';
import { RedisConnection } from './redis/connection.js';
import { RedisLockStore } from './redis/redis-lock-store.js';

interface Settings {
  readonly keyPrefix: string;
  readonly leaseTime: number;
}

/** Makes the store that the options name. Connecting goes on in the background. */
export function createStore(options: LockModuleOptions, settings: Settings): LockStore {
  const { connection, store } = options;
  if (store === 'memory') return new MemoryLockStore();
  if (store !== undefined) return store;
  if (connection !== undefined) return redisStore(connection, settings);
  throw new LockConfigError('nodes', 'Redlock is not available in this version; use connection');
}

function redisStore(connection: ConnectionOption, { keyPrefix, leaseTime }: Settings): LockStore {
  const { client, owned } = commandClientOf(connection, leaseTime);
  const node = nodeName(client);
  // A sixth of the lease leaves time to try a renewal again, two seconds is long for any Redis that works.
  const commandTimeout = Math.max(100, Math.min(leaseTime / 6, 2_000));
  return new RedisLockStore({
    connection: new RedisConnection(client, node, commandTimeout, owned),
    subscriberConnection: () => new RedisConnection(subscriberClient(client), node, commandTimeout, true),
    keyPrefix,
    clientWarnings: owned ? [] : clientWarnings(client, node),
  });
}

function commandClientOf(connection: ConnectionOption, leaseTime: number): { client: Redis; owned: boolean } {
  if (typeof connection === 'string') {
    return { client: commandClient(connection, leaseTime), owned: true };
  }
  if (isClient(connection)) {
    if (connection.isCluster) throw clusterUnavailable();
    return { client: connection as Redis, owned: false };
  }
  if ('cluster' in connection) throw clusterUnavailable();
  return { client: commandClient(connection, leaseTime), owned: true };
}

/** By shape, because the application's ioredis may be another copy than ours. */
const isClient = (connection: object): connection is { isCluster: boolean } =>
  'duplicate' in connection && typeof connection.duplicate === 'function';

const clusterUnavailable = () =>
  new LockConfigError(
    'connection',
    'Redis Cluster is not available in this version; use a single server or Sentinel',
  );
