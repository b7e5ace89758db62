import type { Cluster, Redis } from 'ioredis';
import type { LockModuleOptions } from '../../../lib/index.js';
import { FAIR, type Kind, PLAIN, READ, semaphore, WRITE } from '../../queue/kinds.js';
import type { TestEnvironment } from '../../support/test-environment.js';
import { RedisCluster } from '../../support/redis-cluster.js';

const KINDS: [string, Kind][] = [
  ['plain', PLAIN],
  ['fair', FAIR],
  ['write', WRITE],
  ['read', READ],
  ['semaphore', semaphore(2)],
];
/** Where an application keeps its own data beside the locks. */
export interface Place {
  readonly options: LockModuleOptions;
  /** One of its servers' clients each, all of which get the data. */
  readonly clients: readonly (Redis | Cluster)[];
  readonly kinds: typeof KINDS;
}

export const placesOf = (environment: TestEnvironment): [string, () => Promise<Place>][] => [
  [
    'a single server',
    async () => {
      const server = await environment.server();
      return { options: { connection: server.url }, clients: [server.client()], kinds: KINDS };
    },
  ],
  [
    'a cluster',
    async () => {
      const cluster = await RedisCluster.start();
      environment.add(() => cluster.stop());
      const options = { connection: { cluster: cluster.addresses } };
      return { options, clients: [cluster.client()], kinds: KINDS };
    },
  ],
  [
    'a quorum',
    async () => {
      const servers = await Promise.all([environment.server(), environment.server(), environment.server()]);
      const options = { nodes: servers.map(({ url }) => url) };
      return { options, clients: servers.map((server) => server.client()), kinds: KINDS.slice(0, 1) };
    },
  ],
];
