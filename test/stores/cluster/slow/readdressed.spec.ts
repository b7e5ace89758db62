import { beforeAll, describe, it } from '@jest/globals';
import { Cluster } from 'ioredis';
import { Cluster as OlderCluster } from 'ioredis-5';
import type { LockModuleOptions } from '../../../../lib/index.js';
import { until } from '../../../scenarios/until.js';
import { TcpProxy } from '../../../support/tcp-proxy.js';
import { TestEnvironment } from '../../../support/test-environment.js';
import { clusterOfAll } from '../../../support/test-servers.js';

const environment = TestEnvironment.ofEach();
const cluster = clusterOfAll();

beforeAll(async () => {
  // A client does not connect to a replica, and so does not lose one.
  const slots = () => cluster.servers[0]!.client().cluster('SLOTS') as Promise<unknown[][]>;
  await until(async () => (await slots()).every(([, , master, replica]) => Boolean(master && replica)));
});

interface Node {
  host: string;
  port: number;
}

type NatMap = (address: string) => Node;

/** Each node is reached at an address that all of them change at once, as when their machines are replaced. */
async function addresses() {
  const open = async () => {
    const ways = await Promise.all(cluster.addresses.map(({ port }) => TcpProxy.start(port)));
    for (const way of ways) environment.add(() => way.stop());
    return ways;
  };
  let ways = await open();
  const natMap = (address: string) => {
    const index = cluster.addresses.findIndex(({ port }) => address.endsWith(`:${String(port)}`));
    return { host: '127.0.0.1', port: ways[index]!.port };
  };
  const move = async () => {
    const former = ways;
    ways = await open();
    for (const way of former) {
      way.refuse(true);
      way.cut();
    }
  };
  return { natMap, move };
}

describe.each<[string, (name: Node, natMap: NatMap) => LockModuleOptions['connection']]>([
  ['options', (name, natMap) => ({ cluster: [name], options: { natMap } })],
  ['a client of ioredis 6', (name, natMap) => clientOf(new Cluster([name], { natMap }))],
  [
    'a client of ioredis 5',
    (name, natMap) => clientOf(new OlderCluster([name], { natMap }) as unknown as Cluster),
  ],
])('A cluster that is given as %s', (_, connectionOf) => {
  it('is found again at the name that leads to it where all of its nodes have other addresses', async () => {
    const { natMap, move } = await addresses();
    // The name: it leads to a node, and no node calls itself so.
    const name = await TcpProxy.start(cluster.servers[0]!.port);
    environment.add(() => name.stop());
    const connection = connectionOf({ host: '127.0.0.1', port: name.port }, natMap);
    const locks = environment.service({ connection });
    await (await locks.acquire('order:7')).release();
    await move();
    const isFree = () =>
      locks.tryAcquire('order:7').then(
        async (lease) => {
          await lease?.release();
          return lease !== null;
        },
        () => false,
      );
    await until(isFree);
  });
});

const clientOf = (client: Cluster): Cluster => environment.clientWithListener(client);
