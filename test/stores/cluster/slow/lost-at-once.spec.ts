import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Cluster } from 'ioredis';
import { Cluster as OlderCluster } from 'ioredis-5';
import type { RedisConnection } from '../../../../lib/index.js';
import { RedisCluster } from '../../../support/redis-cluster.js';
import { TcpProxy } from '../../../support/tcp-proxy.js';
import { TestEnvironment } from '../../../support/test-environment.js';

const environment = TestEnvironment.ofEach();
let cluster: RedisCluster;

beforeAll(async () => {
  cluster = await RedisCluster.start();
});

afterAll(() => cluster.stop());

interface Node {
  host: string;
  port: number;
}

/** As this library makes the client of a cluster. */
const UNCHECKED = { enableReadyCheck: false, redisOptions: { enableReadyCheck: false } };

it.each<[string, (first: Node, natMap: Record<string, Node>) => RedisConnection]>([
  ['options', (first, natMap) => ({ cluster: [first], options: { natMap } })],
  ['a client of ioredis 6', (first, natMap) => clientOf(new Cluster([first], { ...UNCHECKED, natMap }))],
  [
    'a client of ioredis 5',
    (first, natMap) => clientOf(new OlderCluster([first], { ...UNCHECKED, natMap }) as unknown as Cluster),
  ],
])(
  'A connection to a node that is lost before its first answer is followed by another, of %s',
  async (_, of) => {
    const ways = await Promise.all(cluster.addresses.map(({ port }) => TcpProxy.start(port)));
    for (const way of ways) environment.add(() => way.stop());
    const nodes = ways.map(({ port }) => ({ host: '127.0.0.1', port }));
    const natMap = Object.fromEntries(
      cluster.addresses.map(({ host, port }, index) => [`${host}:${String(port)}`, nodes[index]!]),
    );
    const [first, ...others] = ways;
    for (const way of others) way.cutAfterReplyBytes(0);
    const locks = environment.service({ connection: of({ host: '127.0.0.1', port: first!.port }, natMap) });
    const names = Array.from({ length: 12 }, (_, n) => `order:${String(n)}`);
    const leases = await Promise.all(names.map((name) => locks.acquire(name)));
    for (const lease of leases) expect(lease.held).toBe(true);
    await Promise.all(leases.map((lease) => lease.release()));
  },
);

function clientOf(client: Cluster): Cluster {
  client.on('error', () => undefined);
  environment.add(() => {
    client.disconnect();
  });
  return client;
}
