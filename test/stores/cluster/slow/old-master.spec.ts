import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, it } from '@jest/globals';
import { clientKeyOf } from '../../../support/keys.js';
import { TestEnvironment } from '../../../support/test-environment.js';
import { until } from '../../../scenarios/until.js';
import { RedisCluster } from '../../../support/redis-cluster.js';
import { serverVersion } from '../../../support/redis-server.js';

/** ms */
const LEASE = 12_000;

const environment = new TestEnvironment();
let cluster: RedisCluster | undefined;

afterAll(async () => {
  await environment.end();
  await cluster?.stop();
});

const ownerOf = async (key: string) => await cluster!.masterOf(await cluster!.slotOf(key));

const staysAlone = /^Redis server v=(?:6|7\.0)\./.test(serverVersion());
const skipped = staysAlone
  ? ''
  : ' (skipped: from Redis 7.2 on, a node that is to forget others has all forget them)';

(staysAlone ? it : it.skip)(
  `renewals alone find the new master of a lock, while the old one is cut off and answers CLUSTERDOWN${skipped}`,
  async () => {
    cluster = await RedisCluster.start();
    const locks = environment.service({
      // Nothing but commands finds the failover out.
      connection: { cluster: cluster.addresses, options: { slotsRefreshInterval: 0 } },
      leaseTime: LEASE,
    });
    const { owner } = await locks.using('before', (lease) => Promise.resolve(lease));
    // The label of the process goes to another master, which stays.
    const labelled = await ownerOf(clientKeyOf('lock:', 'label', owner.slice(0, owner.lastIndexOf(':'))));
    let name = 'a';
    while ((await ownerOf(`lock:${name}`)) === labelled) name += 'a';
    const master = await ownerOf(`lock:${name}`);
    const third = (await cluster.masters()).find((server) => server !== master && server !== labelled)!;
    const roles = await Promise.all(cluster.servers.map((server) => server.client().info('replication')));
    const replica = cluster.servers.find((_, n) =>
      roles[n]?.includes(`master_port:${String(master.port)}\r\n`),
    )!;
    const lease = await locks.acquire(name);
    await sleep(200); // replication

    await master.client().config('SET', 'cluster-require-full-coverage', 'yes');
    for (const server of [replica, third])
      await master.client().cluster('FORGET', await server.client().cluster('MYID'));
    await replica.client().call('CLUSTER', 'FAILOVER', 'TAKEOVER');
    await until(async () => (await master.client().cluster('INFO')).includes('cluster_state:fail'));
    await sleep(LEASE);
    expect(lease.held).toBe(true);
    expect(await replica.client().pttl(`lock:${name}`)).toBeGreaterThan(LEASE / 2);
    await lease.release();
  },
  90_000,
);
