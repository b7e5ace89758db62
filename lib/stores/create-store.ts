import type { Cluster, Redis } from 'ioredis';
import { LockConfigError } from '../api/errors.js';
import type { LockModuleOptions, RedisConnection as ConnectionOption } from '../api/options.js';
import type { LockStore } from '../store/lock-store.js';
import { isMemoryStore, MemoryLockStore } from './memory/memory-lock-store.js';
import { assertPrefix } from '../store/prefix.js';
import { QuorumLockStore } from './quorum/quorum-lock-store.js';
import { clientWarnings } from './redis/connection/client-settings.js';
import { isClient } from './redis/connection/client-options.js';
import { clusterNodes, listedOptions } from './redis/connection/cluster-nodes.js';
import {
  clusterClient,
  clusterName,
  commandClient,
  nodeName,
  nodeSubscriberClient,
  subscriberClient,
} from './redis/connection/clients.js';
import { ClusterConnection } from './redis/connection/cluster-connection.js';
import { ClusterSubscriber } from './redis/messages/cluster-subscriber.js';
import { ServerConnection } from './redis/connection/connection.js';
import type { Deployment, Server } from './redis/connection/deployment.js';
import { MessageState } from './redis/messages/message-state.js';
import { RedisLockStore } from './redis/redis-lock-store.js';
import { RedisMember } from './redis/redis-member.js';
import { Replication, replicationTerms } from './redis/commands/replication.js';
import { RECONNECTS } from './redis/connection/succession.js';
import { Subscriber } from './redis/messages/subscriber.js';

interface Settings {
  readonly keyPrefix: string;
  readonly leaseTime: number;
}

/** The settings that all connections of one store share. */
interface Terms extends Settings {
  readonly commandTimeout: number;
  readonly replication: Replication | undefined;
}

/** The functions that open the connections that this module has made, by store. */
const connectors = new WeakMap<LockStore, () => void>();

/**
 * Opens the connections that this module has made for a store, in the background. A connection that is used before opens by
 * itself. Other stores are left alone.
 */
export const connect = (store: LockStore): void => connectors.get(store)?.();

/** The connections of a store that this module has made. */
const deployments = new WeakMap<LockStore, readonly Deployment[]>();

/** The Redis servers of a store, one by one: none for any other store. Rejects if one of its clusters cannot be asked. */
export async function serversOf(store: LockStore): Promise<readonly Server[]> {
  const nodes = await Promise.all((deployments.get(store) ?? []).map((deployment) => deployment.nodes()));
  return nodes.flat();
}

/** Whether the locks live only in this process. */
export const isInProcess = isMemoryStore;

/** Makes the store that the options name. The store does not connect yet. */
export function createStore(options: LockModuleOptions, settings: Settings): LockStore {
  const { connection, nodes, store } = options;
  const { leaseTime } = settings;
  if (store === 'memory') return new MemoryLockStore();
  if (store !== undefined) return store;
  if (nodes !== undefined) {
    // A silent node must not use up the lease that the other nodes have granted.
    const terms = termsOf(options, settings, commandTimeOf(leaseTime / 20, 50));
    const given = nodes.map((node) => clientOf(node, terms.commandTimeout));
    const members = given.map((client) => singleStore(client, terms, true));
    const quorum = new QuorumLockStore(members, leaseTime);
    deployments.set(
      quorum,
      members.map((member) => member.deployment),
    );
    return connectable(quorum, given);
  }
  if (connection === undefined) throw new LockConfigError('connection', 'is missing');
  // A timeout of a sixth of the lease leaves time to repeat a renewal.
  const terms = termsOf(options, settings, commandTimeOf(leaseTime / 6, 100));
  const given = clientOf(connection, terms.commandTimeout);
  const { store: made, deployment } = given.client.isCluster
    ? clusterStore(given, nameOf(connection), terms)
    : singleStore(given, terms, false);
  deployments.set(made, [deployment]);
  return connectable(made, [given]);
}

/** Two seconds are long for any Redis that works, so a longer lease does not raise this limit. */
const commandTimeOf = (share: number, least: number): number => Math.max(least, Math.min(share, 2_000));

function termsOf({ replication }: LockModuleOptions, settings: Settings, commandTimeout: number): Terms {
  const terms = replication && replicationTerms(replication, commandTimeout);
  return { ...settings, commandTimeout, replication: terms && new Replication(terms) };
}

interface GivenClient {
  readonly client: Redis | Cluster;
  readonly owned: boolean;
  /** The option `slotsRefreshInterval` of a cluster, ms. */
  readonly lookInterval?: number | undefined;
}

function connectable(store: LockStore, given: readonly GivenClient[]): LockStore {
  connectors.set(store, () => {
    for (const { client, owned } of given) {
      // The client reports the outcome as an event.
      if (owned && client.status === 'wait') client.connect().catch(() => undefined);
    }
  });
  return store;
}

function singleStore(
  given: GivenClient,
  { commandTimeout, ...terms }: Terms,
  isMember: boolean,
): RedisMember {
  const { owned } = given;
  const client = given.client as Redis;
  assertPrefix('connection.keyPrefix', client.options.keyPrefix ?? '');
  const node = nodeName(client);
  const succession = owned ? RECONNECTS : undefined;
  const connection = new ServerConnection(client, node, commandTimeout, owned, undefined, succession);
  const store = new RedisLockStore({
    ...terms,
    connection,
    subscriptions: () => {
      const state = new MessageState(connection, connection);
      const its = subscriberClient(client);
      const messages = new ServerConnection(its, node, commandTimeout, true, state, RECONNECTS);
      // The connection for messages may lead to a server that is a replica now. Messages arrive there too, but the master takes
      // a process without a subscription for dead.
      connection.onReconnected(() => {
        messages.renew();
      });
      return new Subscriber(messages, false, connection);
    },
    clientWarnings: owned ? [] : clientWarnings(client, node),
    isMember,
  });
  return new RedisMember(store, connection);
}

function clusterStore(given: GivenClient, name: string, { commandTimeout, ...terms }: Terms) {
  const client = given.client as Cluster;
  const { keyPrefix: clientPrefix = '', redisOptions } = client.options;
  assertPrefix('connection.keyPrefix', clientPrefix);
  for (const { keyPrefix = clientPrefix, stringNumbers } of [redisOptions ?? {}, ...listedOptions(client)]) {
    if (keyPrefix !== clientPrefix) {
      throw new LockConfigError('connection', 'has two keyPrefix that differ, of a cluster and of its nodes');
    }
    if (Boolean(stringNumbers)) {
      const cure = 'leave it out of redisOptions and of the nodes, or pass { cluster } instead of a client';
      throw new LockConfigError(
        'connection',
        `with stringNumbers, ioredis finds no node for part of all names; ${cure}`,
      );
    }
  }
  const connection = new ClusterConnection(client, name, commandTimeout, given.owned);
  const first = client.options.redisOptions?.password;
  // Nodes keep the options that they were made with. The application changes its own, or those of all nodes.
  const ofAll = () =>
    client.options.redisOptions?.password === first ? undefined : client.options.redisOptions;
  const states = new Map<string, MessageState>();
  const connect = (node: ServerConnection) => {
    const state = states.get(node.node) ?? new MessageState(node, connection);
    states.set(node.node, state);
    const its = nodeSubscriberClient(node.client, ofAll());
    return new ServerConnection(its, node.node, commandTimeout, true, state, RECONNECTS);
  };
  const store = new RedisLockStore({
    ...terms,
    connection,
    subscriptions: () => new ClusterSubscriber(connection, connect, commandTimeout, given.lookInterval),
    clientWarnings: [],
    isMember: false,
  });
  return { store, deployment: connection };
}

function clientOf(connection: ConnectionOption, commandTimeout: number): GivenClient {
  if (typeof connection === 'string') {
    return { client: commandClient(connection, commandTimeout), owned: true };
  }
  if (isClient(connection)) return { client: connection, owned: false };
  if ('cluster' in connection) {
    const nodes = clusterNodes('connection.cluster', connection.cluster);
    const { options = {} } = connection;
    const client = clusterClient(nodes, options, commandTimeout);
    return { client, owned: true, lookInterval: options.slotsRefreshInterval };
  }
  return { client: commandClient(connection, commandTimeout), owned: true };
}

const nameOf = (connection: ConnectionOption): string =>
  typeof connection === 'object' && 'cluster' in connection && !isClient(connection)
    ? clusterName(clusterNodes('connection.cluster', connection.cluster))
    : 'cluster';
