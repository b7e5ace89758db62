import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, it } from '@jest/globals';
import { TestEnvironment } from '../../../support/test-environment.js';
import { until } from '../../../scenarios/until.js';
import { RedisCluster } from '../../../support/redis-cluster.js';

const environment = new TestEnvironment();
let cluster: RedisCluster | undefined;

afterAll(async () => {
  await environment.end();
  await cluster?.stop();
});

it('Health is degraded while a part of the masters is away, whose locks are refused, and down without their majority', async () => {
  cluster = await RedisCluster.start();
  const locks = environment.service({
    connection: { cluster: cluster.addresses },
    leaseTime: 12_000,
    waitTime: 4_000,
  });
  expect(await locks.health()).toMatchObject({ status: 'up' });
  const masters = await cluster.masters();
  const [first, second, last] = masters;
  const nameAt = async (master: unknown): Promise<string> => {
    for (let n = 0; ; n++) {
      const name = `name-${String(n)}`;
      if ((await cluster!.masterOf(await cluster!.slotOf(`lock:${name}`))) === master) return name;
    }
  };
  const [lost, kept] = [await nameAt(first), await nameAt(last)];
  for (const server of cluster.servers) if (!masters.includes(server)) await server.kill();

  await cluster.expectFailover();
  await first!.kill();
  await until(async () => (await last!.client().cluster('INFO')).includes('cluster_slots_fail:546'));
  const away = [{ node: `127.0.0.1:${String(first!.port)}`, status: 'down' }];
  const down = async () => {
    const { status, nodes } = await locks.health();
    return {
      status,
      nodes: nodes.filter((node) => node.status === 'down').map(({ node }) => ({ node, status: 'down' })),
    };
  };
  await until(async () => (await down()).status === 'degraded');
  expect(await down()).toEqual({ status: 'degraded', nodes: away });
  await (await locks.acquire(kept)).release();
  await expect(locks.acquire(lost)).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE', permanent: false });

  await second!.kill();
  await until(async () => (await down()).status === 'down');
  await expect(locks.acquire(kept)).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE', permanent: false });
  await cluster.stop();
});

it('Health is degraded, too, if the first question after a pause finds a master frozen', async () => {
  cluster = await RedisCluster.start();
  const locks = environment.service({ connection: { cluster: cluster.addresses } });
  expect(await locks.health()).toMatchObject({ status: 'up' });
  const [victim] = await cluster.masters();
  await cluster.expectFailover();
  // Its connection is replaced, which takes longer, if it was idle.
  await sleep(1_000);
  cluster.freeze(victim!);
  const { status, nodes } = await locks.health();
  expect([status, nodes.filter((node) => node.status === 'down').map(({ node }) => node)]).toEqual([
    'degraded',
    [`127.0.0.1:${String(victim!.port)}`],
  ]);
  await cluster.stop();
});

it('A cluster that is down (CLUSTERDOWN) gives out no lock, says so, and what is held is lost at its deadline', async () => {
  // Without one part of the slots the others are not served either: what Redis does by default.
  cluster = await RedisCluster.start({ args: () => ['--cluster-require-full-coverage', 'yes'] });
  const locks = environment.service({
    connection: { cluster: cluster.addresses },
    leaseTime: 12_000,
    waitTime: 4_000,
  });
  const slot = await cluster.slotOf('lock:a');
  const victim = await cluster.masterOf(slot);
  // One lock on the part that goes, and one that could still be served.
  const other = (await cluster.masters()).find((master) => master !== victim);
  const there: string[] = [];
  for (let n = 0; there.length < 2; n++) {
    const name = `b${String(n)}`;
    if ((await cluster.masterOf(await cluster.slotOf(`lock:${name}`))) === other) there.push(name);
  }
  const [held = '', free = ''] = there;
  const leases = await Promise.all([locks.acquire('a'), locks.acquire(held)]);
  const reasons: unknown[] = [];
  locks.events$.subscribe((event) => {
    if (event.type === 'renewal-failed' && event.names.includes(held)) reasons.push(event.error);
  });

  for (const server of cluster.servers) {
    const role = await server.client().info('replication');
    if (server !== victim && role.includes(`master_port:${String(victim.port)}`)) await server.kill();
  }
  await cluster.expectFailover();
  await victim.kill();
  await until(async () => (await other!.client().cluster('INFO')).includes('cluster_state:fail'));

  for (const wanted of ['c', free]) {
    await expect(locks.tryAcquire(wanted)).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    await expect(locks.acquire(wanted)).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE', permanent: false });
  }
  await until(() => leases.every(({ held }) => !held));
  for (const { signal } of leases)
    expect(signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'unreachable' });
  expect(String(reasons[0])).toContain('CLUSTERDOWN');
  expect((await locks.health()).status).not.toBe('up');
});
