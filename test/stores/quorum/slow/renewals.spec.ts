import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { LockEvent, LockService } from '../../../../lib/index.js';
import { until } from '../../../scenarios/until.js';
import { QuorumEnvironment } from '../quorum-environment.js';
import { fenceOf } from '../../../support/keys.js';

const LEASE = 8_000;

describe('A lease on a quorum', () => {
  let environment: QuorumEnvironment;
  let locks: LockService;
  let losses: LockEvent[];

  beforeEach(async () => {
    environment = await QuorumEnvironment.of(5);
    locks = environment.quorum({ leaseTime: LEASE });
    losses = [];
    locks.events$.subscribe((event) => {
      if (event.type === 'lost') losses.push(event);
    });
    await environment.settled(locks);
  });

  afterEach(async () => {
    for (const node of environment.nodes) node.thaw();
    await environment.end();
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

  /** All nodes acknowledge leases of that length. */
  const allow = async (leaseTime: number) => {
    await (await locks.acquire('b', { leaseTime })).release();
  };

  it('has its old deadline after an extension of which no majority is certain', async () => {
    await allow(60_000);
    const lease = await locks.acquire('a', { leaseTime: 3 * LEASE });
    for (const node of environment.nodes.slice(0, 3)) node.freeze();
    /** The deadline is between these. */
    const deadline = () => {
      const from = performance.now();
      const left = lease.remainingTime();
      return [from + left - 1, performance.now() + left + 1] as const;
    };
    const before = deadline();
    await expect(lease.extend(60_000)).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE', effect: 'unknown' });
    expect(lease.held).toBe(true);
    const after = deadline();
    expect([after[0] <= before[1], after[1] >= before[0]]).toEqual([true, true]);
    for (const node of environment.nodes) node.thaw();
    await lease.release();
    // Though two of them have extended it by a minute.
    await environment.isFreeEverywhere('a');
  });

  it('that has lasted for a second is told at once when it ends by force, though it is not renewed', async () => {
    const lease = await locks.acquire('a', { leaseTime: 120_000 });
    await sleep(1_200);
    const admin = environment.quorum({ leaseTime: LEASE });
    await environment.settled(admin);
    await admin.forceRelease('a');
    // It would be looked at after 40 s.
    await until(() => lease.signal.aborted);
    expect(lease.signal.reason).toMatchObject({ reason: 'deleted' });
    await sleep(100);
    expect(await environment.owners('a')).toEqual(environment.nodes.map(() => undefined));
  });
});
