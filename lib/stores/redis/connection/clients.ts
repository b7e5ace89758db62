import { Cluster, Redis, type ClusterOptions, type RedisOptions } from 'ioredis';
import type { ClusterNodes } from './cluster-nodes.js';
import { urlOptions } from './connection-url.js';
import { sentinelOptions } from './sentinel-connector.js';
import { HEARTBEAT } from '../messages/subscriber.js';
import {
  afterInput,
  clearTimer,
  idle,
  monotonicTime,
  random,
  setTimer,
  timersAreFaked,
} from '../../../runtime/runtime.js';

/** ms without an attempt to connect, after which the next attempt begins again with the shortest pause. */
const CALM = 1_500;

/**
 * ms between attempts to connect: short at first, then about twice a second, for ever. Half to one and a half times the
 * pause, by chance, so that all services of a fleet do not connect at once. ioredis counts the attempts from the last
 * connection that was ready, and a ready connection may be lost at once, again and again.
 */
function retryDelays(): (attempt: number) => number {
  let attempts = 0;
  let lastAt = -Infinity;
  return (attempt) => {
    const now = monotonicTime();
    attempts = now - lastAt < CALM ? Math.max(attempts + 1, attempt) : attempt;
    lastAt = now;
    return Math.round(Math.min(attempts * 50, 500) * (0.5 + random()));
  };
}

/**
 * ms without traffic, after which the system asks the peer for a sign of life. Firewalls and address translation forget an
 * idle connection after minutes, without a word, and ten such questions without an answer end it.
 */
export const KEEP_ALIVE = 30_000;

/**
 * The options with which no command waits without a bound. Nothing is queued while there is no connection, and a command in
 * flight fails when the connection drops. A silent connection is given up, because a peer that vanished without closing
 * never says so.
 */
const bounded = (silence: number) =>
  ({
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    retryStrategy: retryDelays(),
    socketTimeout: silence,
    // ioredis waits this long for a socket to close, also for a socket that has closed: at shutdown that is idle time.
    disconnectTimeout: 200,
    // A server that loads its data says for how long. It may be ready sooner.
    maxLoadingRetryTime: 500,
    // A master that Sentinel has replaced may go on answering, if it was only cut off from the sentinels.
    failoverDetector: true,
    // Otherwise a minute, for which no failover is noticed.
    sentinelReconnectStrategy: (attempt: number) => Math.min(attempt * 100, 1_000) * (0.5 + random()),
    sentinelCommandTimeout: 1_000,
    // Otherwise a cluster's slots come as text, which ioredis compares as text: part of them would have no node.
    stringNumbers: false,
  }) satisfies RedisOptions;

/**
 * ms without an answer, or without a connection that was asked for, after which another connection is made. Twice the time of
 * a command, which is a third of the lease at most: a vanished peer is replaced with time left for a renewal, and while a call
 * still waits.
 */
const silenceOf = (commandTimeout: number): number => Math.max(1_000, 2 * commandTimeout);

/** Unless the application has set them. Otherwise an attempt to connect to a machine that is gone takes ten seconds. */
const connecting = (silence: number) => ({ keepAlive: KEEP_ALIVE, connectTimeout: silence });

/**
 * Our own client for commands. It connects when it is told to, which is when the modules are initialised, or at the first
 * use. If a boot fails before that, nothing is left that would have to be closed.
 */
export function commandClient(given: string | RedisOptions, commandTimeout: number): Redis {
  const connection = typeof given === 'string' ? urlOptions('connection', given) : given;
  const silence = silenceOf(commandTimeout);
  const options = bounded(silence);
  const client = new Redis({
    ...connecting(silence),
    ...connection,
    ...sentinelOptions(connection),
    ...options,
    lazyConnect: true,
    replyMapping: 'legacy',
  });
  watchSilence(client);
  return client;
}

/** The private part of a client of ioredis that `socketTimeout` belongs to. It sets no second timer beside the first one. */
interface Silence {
  socketTimeoutTimer?: NodeJS.Timeout | undefined;
  readonly commandQueue: { readonly length: number };
  setSocketTimeout(): void;
}

/** How often a connection in use is looked at, while it may be silent: the last answer may be as much older. */
const LOOKS = 8;

/**
 * Gives up a silent connection, as ioredis does, with three differences. A process that was busy or stopped finds the timer due
 * before it reads: an answer that has arrived by then counts. The timer ends with its connection: that of ioredis 5 would keep
 * the process alive, and destroy the connection that has followed. And a connection in use has one timer, which lasts, in
 * place of one for each command.
 */
function watchSilence(client: Redis): void {
  const its = client as unknown as Silence;
  let watched: Redis['stream'] | undefined;
  let heard = 0;
  // ioredis sets none while there is one. That of fake timers never fires once a test has ended them.
  let [timer, isFaked] = [its.socketTimeoutTimer, false];
  Object.defineProperty(its, 'socketTimeoutTimer', {
    get: () => (isFaked && !timersAreFaked() ? undefined : timer),
    set: (next: typeof timer) => ([timer, isFaked] = [next, timersAreFaked()]),
  });
  its.setSocketTimeout = () => {
    const { stream, options } = client;
    const silence = options.socketTimeout ?? 0;
    if (stream !== watched) {
      watched = stream;
      stream.on('data', () => heard++);
    }
    let [before, since] = [heard, monotonicTime()];
    const arm = (): void => {
      const timer = idle(
        setTimer(() => {
          afterInput(() => {
            if (its.socketTimeoutTimer === timer) look();
          });
        }, silence / LOOKS),
      );
      its.socketTimeoutTimer = timer;
    };
    const look = (): void => {
      its.socketTimeoutTimer = undefined;
      if (its.commandQueue.length === 0) return;
      const time = monotonicTime();
      if (heard !== before) [before, since] = [heard, time];
      if (time - since < silence) arm();
      else stream.destroy(new Error(`nothing came back within ${String(silence)} ms`));
    };
    arm();
  };
  client.on('close', () => {
    clearTimer(its.socketTimeoutTimer);
    its.socketTimeoutTimer = undefined;
  });
}

/** As `commandClient`, for a cluster. Only this library sends commands again, because it knows the meaning of a command. */
export function clusterClient(
  { nodes, shared }: ClusterNodes,
  options: ClusterOptions,
  commandTimeout: number,
): Cluster {
  const silence = silenceOf(commandTimeout);
  const ours = {
    ...bounded(silence),
    replyMapping: 'legacy',
    // If INFO is renamed away, no node would ever be ready. A node that is loading says so to each command.
    enableReadyCheck: false,
  } as const;
  // An option of one node in the list comes before the same option of all nodes.
  const given = nodes.map((node) => ({ ...node, ...ours }));
  const client = new Cluster(given, {
    ...options,
    redisOptions: { ...connecting(silence), ...shared, ...options.redisOptions, ...ours },
    clusterRetryStrategy: retryDelays(),
    // A lost node is found again, or replaced, by a look at the slots.
    clusterNodeRetryStrategy: null,
    // If a look is in flight when ioredis closes, it starts its timer again, which then keeps the process alive for ever.
    // ClusterSubscriber looks instead.
    slotsRefreshInterval: 0,
    // CLUSTER INFO does not matter for locks: a cluster that is down says so to each command.
    enableReadyCheck: false,
    enableOfflineQueue: false,
    lazyConnect: true,
  });
  client.on('+node', watchSilence);
  return client;
}

/** The options that may change while a client is in use, because they rotate. */
const CREDENTIALS = [
  'username',
  'password',
  'tls',
  'sentinelUsername',
  'sentinelPassword',
  'sentinelTLS',
] as const;

const credentialsOf = (options: RedisOptions): RedisOptions =>
  Object.fromEntries(CREDENTIALS.flatMap((name) => (name in options ? [[name, options[name]]] : [])));

/**
 * A client of ours to the server of another one. It takes the present credentials of that one each time that it connects,
 * for the first time with its first command.
 * @param ofAll the options of all nodes, if that one is a node of a cluster
 */
function derivedClient(origin: Redis, ours: RedisOptions, ofAll: RedisOptions = {}): Redis {
  const client = origin.duplicate({
    ...bounded(HEARTBEAT),
    ...ours,
    autoResubscribe: false,
    lazyConnect: true,
  });
  const connect = client.connect.bind(client);
  client.connect = (callback) => {
    // The connector of the client has the same object.
    Object.assign(client.options, credentialsOf(origin.options), credentialsOf(ofAll));
    return connect(callback);
  };
  watchSilence(client);
  return client;
}

/** Our own client for messages, to the same server and with the same credentials as `client`. */
export const subscriberClient = (client: Redis): Redis =>
  derivedClient(client, {
    ...sentinelOptions(client.options, client),
    // Messages do not belong to a database.
    db: 0,
    enableReadyCheck: true,
  });

/**
 * The same for one node of a cluster. It does not reconnect by itself: the slots may have gone to another node.
 * @param ofAll the options of all nodes of a cluster of the application, which its next connections have
 */
export const nodeSubscriberClient = (node: Redis, ofAll?: RedisOptions): Redis =>
  derivedClient(
    node,
    {
      retryStrategy: () => null,
      // ioredis treats a sharded channel as a key.
      keyPrefix: '',
      readOnly: false,
      // Messages also arrive while the node is loading.
      enableReadyCheck: false,
    },
    ofAll,
  );

/** The nodes at which a cluster is looked for. */
export const clusterName = ({ nodes }: ClusterNodes): string =>
  `cluster ${nodes.map(({ host, port }) => `${host}:${String(port)}`).join(', ')}`;

/** Host and port for logs and health reports: never the user name or the password. */
export function nodeName(client: Redis): string {
  const { host, port, path, sentinels, name } = client.options;
  if (sentinels != null) return `sentinel ${name ?? ''}`.trim();
  return path ?? `${host ?? 'localhost'}:${String(port ?? 6379)}`;
}
