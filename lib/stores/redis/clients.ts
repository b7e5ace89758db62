import { Cluster, Redis, type ClusterOptions, type RedisOptions } from 'ioredis';
import type { ClusterNodes } from './cluster-nodes.js';
import { urlOptions } from './connection-url.js';
import { sentinelOptions } from './sentinel-connector.js';
import { HEARTBEAT } from './subscriber.js';

/** ms after which another attempt to connect begins anew with the shortest pause. */
const CALM = 1_500;

/**
 * ms between attempts to connect: soon at first, then twice a second, for ever. ioredis counts the attempts from the last
 * connection that was ready, and one that is ready may be lost at once, again and again.
 */
function patience(): (attempt: number) => number {
  let attempts = 0;
  let lastAt = -Infinity;
  return (attempt) => {
    const now = performance.now();
    attempts = now - lastAt < CALM ? Math.max(attempts + 1, attempt) : attempt;
    lastAt = now;
    return Math.min(attempts * 50, 500);
  };
}

/**
 * What a client needs so that no command waits without a bound: nothing is queued while there is no connection, and
 * what was in flight fails when the connection drops. A silent connection is given up, because a peer that vanished
 * without closing never says so.
 */
const bounded = (silence: number) =>
  ({
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    retryStrategy: patience(),
    socketTimeout: silence,
    // ioredis waits so long for a socket to close, also for one that has closed: at shutdown that is idle time.
    disconnectTimeout: 200,
    // A server that loads its data says for how long; it may be ready sooner.
    maxLoadingRetryTime: 500,
    // A master that Sentinel has replaced may go on answering, if it was only cut off from the sentinels.
    failoverDetector: true,
    sentinelCommandTimeout: 1_000,
    // A cluster's slots would come as text, which ioredis compares as such: part of them would have no node.
    stringNumbers: false,
  }) satisfies RedisOptions;

/**
 * A third of the lease: a vanished peer is noticed and replaced with time left for a renewal. Beyond 25 days the timer of
 * ioredis would overflow and fire at once, and an hour is long for any peer.
 */
const silenceOf = (leaseTime: number): number => Math.min(Math.max(1_000, leaseTime / 3), 3_600_000);

/**
 * Our own client for commands. It connects when it is told to, which is once the modules are initialised, or used: of a
 * boot that fails before that, nobody gets anything that could be closed.
 */
export function commandClient(given: string | RedisOptions, leaseTime: number): Redis {
  const connection = typeof given === 'string' ? urlOptions('connection', given) : given;
  const options = bounded(silenceOf(leaseTime));
  return new Redis({
    ...connection,
    ...sentinelOptions(connection),
    ...options,
    lazyConnect: true,
    replyMapping: 'legacy',
  });
}

/** As `commandClient`, for a cluster: its own repetitions are left to us, who know what a command means. */
export function clusterClient(
  { nodes, shared }: ClusterNodes,
  options: ClusterOptions,
  leaseTime: number,
): Cluster {
  const ours = {
    ...bounded(silenceOf(leaseTime)),
    replyMapping: 'legacy',
    // Without INFO, renamed away, no node would ever be ready. A node that is loading says so to each command.
    enableReadyCheck: false,
  } as const;
  // What a node of the list has comes before what all have.
  const given = nodes.map((node) => ({ ...node, ...ours }));
  return new Cluster(given, {
    ...options,
    redisOptions: { ...shared, ...options.redisOptions, ...ours },
    clusterRetryStrategy: patience(),
    // A node that is lost is found again, or replaced, by looking at the slots.
    clusterNodeRetryStrategy: null,
    // CLUSTER INFO is no question of locks: a cluster that is down says so to each command.
    enableReadyCheck: false,
    enableOfflineQueue: false,
    lazyConnect: true,
  });
}

/** Our own client for messages, to the same place and with the same credentials as `client`. */
export function subscriberClient(client: Redis): Redis {
  return client.duplicate({
    ...bounded(HEARTBEAT),
    ...sentinelOptions(client.options, client),
    // Messages know no databases.
    db: 0,
    autoResubscribe: false,
    enableReadyCheck: true,
    lazyConnect: false,
  });
}

/** The same for one node of a cluster. It does not come back by itself: the slots may have gone elsewhere. */
export function nodeSubscriberClient(node: Redis): Redis {
  return node.duplicate({
    ...bounded(HEARTBEAT),
    retryStrategy: () => null,
    // ioredis takes a sharded channel for a key.
    keyPrefix: '',
    readOnly: false,
    autoResubscribe: false,
    // Messages are heard while it is loading, too.
    enableReadyCheck: false,
    lazyConnect: false,
  });
}

/** The nodes that a cluster is looked for at. */
export const clusterName = ({ nodes }: ClusterNodes): string =>
  `cluster ${nodes.map(({ host, port }) => `${host}:${String(port)}`).join(', ')}`;

/** Host and port for logs and health reports: never the user name or the password. */
export function nodeName(client: Redis): string {
  const { host, port, path, sentinels, name } = client.options;
  if (sentinels != null) return `sentinel ${name ?? ''}`.trim();
  return path ?? `${host ?? 'localhost'}:${String(port ?? 6379)}`;
}
