import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Cluster } from 'ioredis';
import { Cluster as OlderCluster } from 'ioredis-5';
import { until } from '../../../scenarios/until.js';
import { RedisCluster } from '../../../support/redis-cluster.js';
import { TestEnvironment } from '../../../support/test-environment.js';

const environment = TestEnvironment.ofEach();
let cluster: RedisCluster;

beforeAll(async () => {
  cluster = await RedisCluster.start();
});

afterAll(() => cluster.stop());

const onAll = (...command: [string, ...string[]]) =>
  Promise.all(cluster.servers.map((server) => server.client().call(...command)));

describe.each<[string, (redisOptions: { username: string; password: string }) => Cluster]>([
  ['6', (redisOptions) => new Cluster(cluster.addresses, { redisOptions })],
  ['5', (redisOptions) => new OlderCluster(cluster.addresses, { redisOptions }) as unknown as Cluster],
])("A password that rotates on the application's cluster client of ioredis %s", (_, make) => {
  /** A service over that client, which has a connection for messages. */
  async function stage() {
    await onAll('ACL', 'SETUSER', 'app', 'reset', 'on', '>first', '~*', '&*', '+@all');
    let password = 'first';
    const client = make({ username: 'app', password });
    client.on('error', () => undefined);
    // ioredis 6 copies the options of its nodes once, so each node has to be told.
    client.on('+node', (node) => (node.options.password = password));
    environment.add(() => {
      client.disconnect();
    });
    const locks = environment.service({ connection: client, leaseTime: 300_000 });
    const holder = environment.service({ connection: { cluster: cluster.addresses }, leaseTime: 300_000 });
    /** A hand-over by a message: the holder's lease lasts far longer. */
    const handOver = async () => {
      const held = await holder.acquire('order:1');
      const waiting = locks.acquire('order:1');
      await until(async () => (await holder.inspect('order:1'))?.waiters.processes === 1);
      await held.release();
      await (await waiting).release();
    };
    await handOver();
    const give = (next: string) => {
      password = next;
      for (const node of client.nodes()) node.options.password = next;
    };
    return { locks, handOver, give };
  }

  it('is that of the connection for messages, too', async () => {
    const { locks, handOver, give } = await stage();
    await onAll('ACL', 'SETUSER', 'app', 'resetpass', '>next');
    give('next');
    await onAll('CLIENT', 'KILL', 'USER', 'app');
    await until(() =>
      locks.tryAcquire('order:1').then(
        async (lease) => {
          await lease?.release();
          return true;
        },
        () => false,
      ),
    );
    await handOver();
    const { nodes } = await locks.health();
    expect(nodes.map(({ subscriber }) => subscriber)).not.toContain(false);
  });
});
