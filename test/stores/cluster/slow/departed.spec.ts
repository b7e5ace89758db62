import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Cluster, type Redis } from 'ioredis';
import { Cluster as OlderCluster } from 'ioredis-5';
import { ClusterConnection } from '../../../../lib/stores/redis/connection/cluster-connection.js';
import { recall } from '../../../../lib/stores/redis/commands/script.js';
import { until } from '../../../scenarios/until.js';
import { RedisCluster } from '../../../support/redis-cluster.js';
import { TestEnvironment } from '../../../support/test-environment.js';

/** One address in several forms, as if the nodes moved to other addresses. */
const HOSTS = ['127.0.0.1', '127.1', '127.0.1', '0x7f.1', '127.0x1'];

const environment = TestEnvironment.ofEach();
let cluster: RedisCluster;

beforeAll(async () => {
  cluster = await RedisCluster.start();
});

afterAll(() => cluster.stop());

const sizeOf = (connection: ClusterConnection, field: 'connections' | 'states') =>
  (Reflect.get(Reflect.get(connection, 'servers') as object, field) as Map<string, unknown>).size;

const listenersOf = (node: Redis) => node.eventNames().map((name) => [name, node.listenerCount(name)]);

async function pingAll(connection: ClusterConnection): Promise<void> {
  const nodes = await connection.nodes();
  await Promise.all(nodes.map((node) => node.send((client) => client.ping())));
}

describe.each([
  ['ioredis 6', Cluster],
  ['ioredis 5', OlderCluster as unknown as typeof Cluster],
])('The nodes of a cluster, over %s,', (_, Client) => {
  async function connected() {
    let host = '127.0.0.1';
    const natMap = (address: string) => ({ host, port: Number(address.split(':')[1]) });
    const client = new Client(cluster.addresses, { natMap, redisOptions: { disconnectTimeout: 0 } });
    environment.add(() => {
      client.disconnect();
    });
    client.on('error', () => undefined);
    await once(client, 'ready');
    const connection = new ClusterConnection(client, 'cluster', 2_000, false);
    const move = async (next: string) => {
      const former = next === host ? [] : client.nodes();
      const refreshed = once(client, 'refresh');
      host = next;
      client.refreshSlotsCache();
      await refreshed;
      await until(() => former.every(({ status }) => status === 'end'));
    };
    return { client, connection, move };
  }

  it('are forgotten when they have left', async () => {
    const { connection, move } = await connected();
    for (const host of HOSTS) {
      await move(host);
      await pingAll(connection);
    }
    // Those of the last address have left by now, and are found out by the next look.
    await move(HOSTS[0]!);
    await move(HOSTS[0]!);
    expect(sizeOf(connection, 'connections')).toBe(0);
    expect(sizeOf(connection, 'states')).toBe(0);
    await pingAll(connection);
    expect(sizeOf(connection, 'connections')).toBe(3);
    await connection.close();
  });

  it('are left alone after the end, also those that come later', async () => {
    const { client, connection, move } = await connected();
    await pingAll(connection);
    await connection.close();
    await move(HOSTS[1]!);
    const before = client.nodes().map(listenersOf);
    await pingAll(connection).catch(() => undefined);
    await connection.run(recall, ['a'], []).catch(() => undefined);
    expect(client.nodes().map(listenersOf)).toEqual(before);
  });
});
