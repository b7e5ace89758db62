import { expect } from '@jest/globals';
import type { Cluster, Redis } from 'ioredis';
import { LockKindMismatchError, type LockModuleOptions, type LockService } from '../../../lib/index.js';
import type { LockStore, QueueTerms } from '../../../lib/store/lock-store.js';
import { createStore } from '../../../lib/stores/create-store.js';
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

/** ms: a command on a node of a quorum has a second then. */
export const LEASE = 20_000;
export const FAIR_TERMS: QueueTerms = { kind: 'fair', mode: 'exclusive', capacity: 1 };

/** A service and a store without a prefix, on the servers of a place. */
export async function lockingIn(
  environment: TestEnvironment,
  open: () => Promise<Place>,
): Promise<{ place: Place; locks: LockService; store: LockStore }> {
  const place = await open();
  const locks = environment.service({ ...place.options, leaseTime: LEASE, keyPrefix: '' });
  const store = createStore(place.options, { keyPrefix: '', leaseTime: LEASE });
  environment.add(() => store.close());
  await (await locks.acquire('warm-up')).release();
  return { place, locks, store };
}

/** The attempt fails because the name belongs to the application. */
export async function expectMismatch(key: string, attempt: Promise<unknown>): Promise<void> {
  const error: unknown = await attempt.then(
    (value) => ({ unexpected: value }),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(LockKindMismatchError);
  expect(error).toMatchObject({ key, message: expect.stringContaining('a value that is no lock') });
}
