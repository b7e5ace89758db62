import { afterAll, expect, it } from '@jest/globals';
import type { Cluster } from 'ioredis';
import { Cluster as OlderCluster } from 'ioredis-5';
import { until } from '../../../scenarios/until.js';
import { RedisCluster } from '../../../support/redis-cluster.js';
import { TestEnvironment } from '../../../support/test-environment.js';

const environment = new TestEnvironment();

afterAll(() => environment.end());

it("a password that rotates on the application's cluster client is that of the connection for messages, too", async () => {
  const cluster = await RedisCluster.start();
  environment.add(() => cluster.stop());
  const onAll = (...command: [string, ...string[]]) =>
    Promise.all(cluster.servers.map((server) => server.client().call(...command)));
  await onAll('ACL', 'SETUSER', 'app', 'reset', 'on', '>first', '~*', '&*', '+@all');
  const redisOptions = { username: 'app', password: 'first' };
  // ioredis 6 copies the options of its nodes once, so its own connections would keep the first password.
  const client = new OlderCluster(cluster.addresses, { redisOptions }) as unknown as Cluster;
  client.on('error', () => undefined);
  environment.add(() => {
    client.disconnect();
  });
  const locks = environment.service({ connection: client });
  const holder = environment.service({ connection: { cluster: cluster.addresses } });
  /** A hand-over by a message: the holder's lease lasts far longer. */
  const handOver = async (name: string) => {
    const held = await holder.acquire(name);
    const waiting = locks.acquire(name);
    await until(async () => (await holder.inspect(name))?.waiters.processes === 1);
    await held.release();
    await (await waiting).release();
  };
  await handOver('order:1');

  await onAll('ACL', 'SETUSER', 'app', 'resetpass', '>next');
  client.options.redisOptions!.password = 'next';
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
  await handOver('order:1');
  const { nodes } = await locks.health();
  expect(nodes.map(({ subscriber }) => subscriber)).not.toContain(false);
}, 60_000);
