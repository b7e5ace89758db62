import type { Cluster, RedisOptions } from 'ioredis';
import { LockConfigError } from '../../../api/errors.js';
import { urlOptions } from './connection-url.js';

type Node = RedisOptions & { host: string; port: number };

/** Options of a cluster as a whole, not of one of its nodes. */
const OF_ALL = ['keyPrefix', 'protocol'] as const;

export interface ClusterNodes {
  readonly nodes: Node[];
  /** The other parts of the URLs, beside host and port. The cluster names its other nodes without these options. */
  readonly shared: RedisOptions;
}

/**
 * Reads the nodes at which a cluster is looked for. ioredis would connect to a `rediss:` URL without TLS. It would connect
 * to the other nodes that the cluster names without the user name and password of a URL.
 * @throws LockConfigError
 */
export function clusterNodes(option: string, given: readonly unknown[]): ClusterNodes {
  let shared: RedisOptions = {};
  const nodes = given.map((node, index): Node => {
    const path = `${option}[${String(index)}]`;
    if (typeof node === 'number') return { host: '127.0.0.1', port: node };
    if (typeof node === 'object' && node !== null) {
      const {
        host = '127.0.0.1',
        port = 6379,
        ...rest
      } = node as Partial<Omit<Node, 'port'>> & { port?: number | string };
      return { host, port: Number(port), ...rest };
    }
    if (typeof node !== 'string') {
      throw new LockConfigError(path, 'must be { host, port }, a port or a URL', { value: node });
    }
    if (/^\d+$/.test(node)) return { host: '127.0.0.1', port: Number(node) };
    const { db = 0, ...read } = urlOptions(path, node.includes('://') ? node : `redis://${node}`);
    if (db !== 0) throw new LockConfigError(path, 'a cluster has no other database than 0');
    const ofAll = OF_ALL.find((name) => read[name] !== undefined);
    if (ofAll !== undefined) throw new LockConfigError(path, `${ofAll} belongs in options.redisOptions`);
    const { host = '', port = 0, ...rest } = read;
    shared = { ...rest, ...shared };
    return { host, port, ...rest };
  });
  return { nodes, shared };
}

/**
 * The options beside the addresses in a client's list of nodes. ioredis does not publish it, and prefers
 * it to the options of all nodes.
 */
export function listedOptions(client: Cluster): Pick<RedisOptions, 'keyPrefix' | 'stringNumbers'>[] {
  const { startupNodes = [] } = client as unknown as { startupNodes?: readonly unknown[] };
  return startupNodes.map((node) => {
    if (typeof node === 'object' && node !== null) return node;
    // ioredis treats the parameters of a URL as options, as texts.
    const query = typeof node === 'string' ? node.slice(node.indexOf('?') + 1) : '';
    return Object.fromEntries(new URLSearchParams(query));
  });
}
