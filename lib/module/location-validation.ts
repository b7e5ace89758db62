import { assertKnownOptions } from '../client/validation.js';
import { describe } from '../api/describe.js';
import { LockConfigError } from '../api/errors.js';
import type { LockModuleOptions } from '../api/options.js';
import type { ResolvedLockOptions } from '../api/resolved-options.js';
import type { LockStore } from '../store/lock-store.js';
import { assertClientOptions, isClient } from '../stores/redis/connection/client-options.js';
import { clusterNodes } from '../stores/redis/connection/cluster-nodes.js';
import { urlOptions } from '../stores/redis/connection/connection-url.js';

/** The options that name a store. */
export const LOCATIONS = ['connection', 'nodes', 'store'] as const;

export function locationOf(options: LockModuleOptions): ResolvedLockOptions['location'] {
  const given = LOCATIONS.filter((location) => options[location] !== undefined);
  const [location] = given;
  if (location === undefined || given.length > 1) {
    throw new LockConfigError(
      'connection / nodes / store',
      `exactly one of them must be given (found: ${given.length === 0 ? 'none' : given.join(' and ')})`,
    );
  }
  const { connection, store, nodes } = options;
  if (connection !== undefined) assertConnection('connection', connection);
  if (nodes !== undefined) assertNodes(nodes);
  if (store !== undefined && store !== 'memory' && !isStore(store)) {
    throw new LockConfigError('store', "must be 'memory' or a LockStore", { value: store });
  }
  return location;
}

function assertNodes(nodes: unknown): void {
  if (!Array.isArray(nodes)) {
    throw new LockConfigError('nodes', 'must be an array of connections', { value: nodes });
  }
  if (nodes.length < 3 || nodes.length % 2 === 0) {
    const rule = 'must be an odd number of masters, at least 3; an even number tolerates no more failures';
    throw new LockConfigError('nodes', rule, { value: nodes });
  }
  nodes.forEach((node: unknown, index) => {
    const option = `nodes[${String(index)}]`;
    assertConnection(option, node);
    // A node that is named twice votes twice.
    if (nodes.indexOf(node) !== index)
      throw new LockConfigError(option, 'is the same connection as another node');
    if (isObject(node) && isCluster(node)) {
      throw new LockConfigError(option, 'must be a single server or Sentinel: a cluster is no single vote');
    }
  });
}

function assertConnection(option: string, connection: unknown): void {
  if (typeof connection === 'string') {
    urlOptions(option, connection);
    return;
  }
  // ioredis would treat an unknown object as options, find nothing in it, and connect to localhost.
  if (
    !isObject(connection) ||
    Array.isArray(connection) ||
    isInstanceWithoutOptions(connection) ||
    isOtherClient(connection)
  ) {
    const rule = 'must be a URL, ioredis options, { cluster } or an ioredis client';
    throw new LockConfigError(option, rule, { value: connection });
  }
  const { status, mode, manuallyClosing, cluster } = connection as Partial<
    Record<'status' | 'mode' | 'manuallyClosing' | 'cluster', unknown>
  >;
  // The options of an existing client are the application's own concern.
  if (!isClient(connection)) {
    if ('cluster' in connection) assertKnownOptions(connection, ['cluster', 'options'], option);
    assertClientOptions(option, connection);
    if (Array.isArray(cluster)) clusterNodes(`${option}.cluster`, cluster);
  }
  // `manuallyClosing` is ioredis's own mark on a client that has been told to close and is not closed yet.
  if (status === 'end' || manuallyClosing === true) {
    const cure = 'pass one that is open and stays so, a URL or options';
    throw new LockConfigError(option, `the given client is closed; ${cure} (found: ${describe(status)})`);
  }
  if (mode === 'subscriber' || mode === 'monitor') {
    const cure = 'pass another one, such as client.duplicate() made before that, a URL or options';
    throw new LockConfigError(option, `the given client is in ${mode} mode and takes no commands; ${cure}`);
  }
}

/** A client of another library. Clients of ioredis, and their doubles, have a status; options have no such methods. */
const isOtherClient = (connection: object): boolean => {
  const member = connection as Partial<Record<string, unknown>>;
  return (
    ['duplicate', 'on', 'close'].some((method) => typeof member[method] === 'function') &&
    typeof member.status !== 'string' &&
    typeof member.isCluster !== 'boolean'
  );
};

/** A Promise, a Map, a URL, or an object of a class with getters, which ioredis does not read. */
const isInstanceWithoutOptions = (connection: object): boolean =>
  Object.getPrototypeOf(connection) !== Object.prototype && Object.keys(connection).length === 0;

/** A client of a single server also has a member of that name: the command. */
const isCluster = (connection: { isCluster?: unknown; cluster?: unknown }): boolean =>
  connection.isCluster === true || Array.isArray(connection.cluster);

export const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

/** All required methods of the port. Without this check, a missing one would be noticed only when it is needed. */
const STORE_METHODS: readonly (keyof LockStore)[] = [
  'acquire',
  'acquireAll',
  'locationOf',
  'renew',
  'release',
  'subscribeToReleases',
  'inspect',
  'forceRelease',
  'health',
  'onConnectionChange',
  'close',
];

const isStore = (value: unknown): boolean =>
  isObject(value) &&
  STORE_METHODS.every((method) => typeof (value as Record<string, unknown>)[method] === 'function') &&
  hasSoundQueues(value);

const hasSoundQueues = ({ queues }: { queues?: unknown }): boolean =>
  queues === undefined ||
  (isObject(queues) && typeof (queues as { subscribe?: unknown }).subscribe === 'function');
