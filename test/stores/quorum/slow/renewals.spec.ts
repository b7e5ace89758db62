import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from '@jest/globals';
import type { LockEvent, LockService } from '../../../../lib/index.js';
import { until } from '../../../scenarios/until.js';
import { QuorumEnvironment } from '../quorum-environment.js';
import { fenceOf } from '../../../support/keys.js';

const LEASE = 8_000;

describe('A lease on a quorum', () => {
  const environment = QuorumEnvironment.forEach(5);
  let locks: LockService;
  let losses: LockEvent[];

  beforeEach(async () => {
    locks = environment.quorum({ leaseTime: LEASE });
    losses = [];
    locks.events$.subscribe((event) => {
      if (event.type === 'lost') losses.push(event);
    });
    await environment.settled(locks);
  });

  it('is kept for as long as the work takes while two are dead, and spreads to them when they are back', async () => {
    const lease = await locks.acquire('a');
    await Promise.all([0, 1].map((index) => environment.node(index).kill()));
    await sleep(LEASE + 1_000);
    expect(lease.held).toBe(true);
    await Promise.all([0, 1].map((index) => environment.node(index).restart()));
    await until(async () => (await environment.owners('a')).every((owner) => owner === lease.owner));
    for (const node of environment.nodes.slice(0, 2)) {
      const fence = String(await node.client().get(fenceOf('lock:a')));
      expect(Number(fence.split(' ')[0])).toBeGreaterThanOrEqual(lease.fencingToken);
    }
    expect(lease.held).toBe(true);
    expect(losses).toEqual([]);
    await lease.release();
    await environment.isFreeEverywhere('a');
  });

  it('is lost at its deadline when three are frozen, and nothing of it comes back when they thaw', async () => {
    const lease = await locks.acquire('a');
    for (const node of environment.nodes.slice(0, 3)) node.freeze();
    const promised = performance.now() + lease.remainingTime();
    await until(() => lease.signal.aborted);
    expect(performance.now()).toBeGreaterThanOrEqual(promised - 5);
    expect(losses).toEqual([expect.objectContaining({ name: 'a', reason: 'unreachable' })]);
    for (const node of environment.nodes) node.thaw();
    await environment.isFreeEverywhere('a');
  });
});
