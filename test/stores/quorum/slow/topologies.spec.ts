import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { LockService } from '../../../../lib/index.js';
import { until } from '../../../scenarios/until.js';
import { SentinelDeployment } from '../../../support/sentinel.js';
import { QuorumEnvironment } from '../quorum-environment.js';

const LEASE = 20_000;

describe('A quorum of two servers and a Sentinel deployment', () => {
  let environment: QuorumEnvironment;
  let deployment: SentinelDeployment;
  let locks: LockService;

  beforeAll(async () => {
    environment = await QuorumEnvironment.of(2);
    deployment = await SentinelDeployment.start();
    environment.add(() => deployment.stop());
    locks = environment.quorum({ leaseTime: LEASE }, [...environment.urls, deployment.connection]);
    await environment.settled(locks);
  });

  afterAll(async () => {
    await locks.onApplicationShutdown();
    await environment.end();
  });

  it('has a vote of the deployment as of any other node', async () => {
    const master = await deployment.master();
    const lease = await locks.acquire('a');
    // A majority is enough for the lock, so that the third may come later.
    await until(async () =>
      (await environment.owners('a', [...environment.nodes, master])).every((owner) => owner === lease.owner),
    );
    await lease.release();
    await until(async () =>
      (await environment.owners('a', [...environment.nodes, master])).every((owner) => owner === undefined),
    );
    await environment.node(0).kill();
    await (await locks.acquire('a')).release();
    await environment.node(0).restart();
    await until(async () => (await locks.health()).status === 'up');
  });

  it('keeps its locks through a failover, and does not count the new master until it can have forgotten nothing', async () => {
    const former = await deployment.master();
    const lease = await locks.acquire('a');
    const died = performance.now();
    await former.kill();
    const elected = await deployment.master(former);
    await until(async () => ((await locks.health()).nodes[2]?.quarantine ?? 0) > 0);
    await until(async () => (await environment.owners('a', [elected]))[0] === lease.owner);
    expect(lease.held).toBe(true);
    await until(async () => (await locks.health()).nodes[2]?.quarantine === 0);
    expect(performance.now() - died).toBeGreaterThan(LEASE);
    await environment.node(0).kill();
    expect(lease.held).toBe(true);
    await lease.release();
    await (await locks.acquire('a')).release();
  });
});
