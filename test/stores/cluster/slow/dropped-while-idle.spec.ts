import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, it } from '@jest/globals';
import { RedisCluster } from '../../../support/redis-cluster.js';
import { TcpProxy } from '../../../support/tcp-proxy.js';
import { TestEnvironment } from '../../../support/test-environment.js';

const environment = new TestEnvironment();

afterAll(() => environment.end());

it('an idle connection to a node that was dropped without a word is replaced under the first call', async () => {
  const cluster = await RedisCluster.start();
  environment.add(() => cluster.stop());
  const ways = await Promise.all(cluster.addresses.map(({ port }) => TcpProxy.start(port)));
  for (const way of ways) environment.add(() => way.stop());
  const natMap = Object.fromEntries(
    cluster.addresses.map(({ host, port }, index) => [
      `${host}:${String(port)}`,
      { host, port: ways[index]!.port },
    ]),
  );
  const nodes = Object.values(natMap);
  const locks = environment.service({ connection: { cluster: nodes, options: { natMap } } });
  const names = Array.from({ length: 12 }, (_, n) => `order:${String(n)}`);
  const callAll = async () => {
    const leases = await Promise.all(names.map((name) => locks.acquire(name)));
    await Promise.all(leases.map((lease) => lease.release()));
  };
  await callAll();
  await sleep(500);
  for (const way of ways) way.forgetConnections();
  await callAll();
  expect(locks.leases()).toEqual([]);
}, 60_000);
