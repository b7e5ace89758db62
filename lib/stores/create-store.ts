import type { Redis } from 'ioredis';
import { LockConfigError } from '../lock.errors.js';
import type {
  LockModuleOptions,
  RedisConnection as ConnectionOption,
  ReplicationOptions,
} from '../lock.options.js';
import type { LockStore } from './lock-store.js';
import { MemoryLockStore } from './memory/memory-lock-store.js';
import { QuorumLockStore } from './quorum/quorum-lock-store.js';
import { commandClient, nodeName, subscriberClient } from './redis/clients.js';
import { clientWarnings } from './redis/client-settings.js';
import { RedisConnection } from './redis/connection.js';
import { RedisLockStore } from './redis/redis-lock-store.js';
import { RedisMember } from './redis/redis-member.js';
import { Replication, replicationTerms } from './redis/replication.js';

interface Settings {
  readonly keyPrefix: string;
  readonly leaseTime: number;
}

/** Makes the store that the options name. Connecting goes on in the background. */
export function createStore(options: LockModuleOptions, settings: Settings): LockStore {
  const { connection, nodes, store, replication } = options;
  const { leaseTime } = settings;
  if (store === 'memory') return new MemoryLockStore();
  if (store !== undefined) return store;
  if (nodes !== undefined) {
    // A node that is silent must not use up the lease that the others have granted.
    const nodeTimeout = Math.max(50, leaseTime * 0.05);
    return new QuorumLockStore(
      nodes.map((node) => redisMember(node, settings, nodeTimeout, replication)),
      leaseTime,
    );
  }
  if (connection === undefined) throw new LockConfigError('connection', 'is missing');
  // A sixth of the lease leaves time to try a renewal again, two seconds is long for any Redis that works.
  const commandTimeout = Math.max(100, Math.min(leaseTime / 6, 2_000));
  return redisMember(connection, settings, commandTimeout, replication).store;
}

function redisMember(
  option: ConnectionOption,
  { keyPrefix, leaseTime }: Settings,
  commandTimeout: number,
  replication: ReplicationOptions | undefined,
): RedisMember {
  const { client, owned } = commandClientOf(option, leaseTime);
  const node = nodeName(client);
  const terms = replication && replicationTerms(replication, commandTimeout);
  const connection = new RedisConnection(client, node, commandTimeout, owned);
  const store = new RedisLockStore({
    connection,
    subscriberConnection: () => new RedisConnection(subscriberClient(client), node, commandTimeout, true),
    keyPrefix,
    clientWarnings: owned ? [] : clientWarnings(client, node),
    replication: terms && new Replication(connection, terms),
  });
  return new RedisMember(store, connection, keyPrefix);
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
