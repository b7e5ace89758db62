import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { type LockService } from '../../../../lib/index.js';
import { until } from '../../../scenarios/until.js';
import type { TcpProxy } from '../../../support/tcp-proxy.js';
import { QuorumEnvironment } from '../quorum-environment.js';

const LEASE = 10_000;

describe('A node that is killed and comes back empty', () => {
  const environment = QuorumEnvironment.forEach(5);
  let proxies: TcpProxy[];
  let holder: LockService;
  let rival: LockService;

  beforeEach(async () => {
    proxies = await environment.proxies();
    holder = environment.quorum(
      { leaseTime: LEASE },
      proxies.map(({ url }) => url),
    );
    rival = environment.quorum({ leaseTime: LEASE });
    await Promise.all([environment.settled(holder), environment.settled(rival)]);
  });

  /** Nodes 3 and 4 are out of reach for the holder. */
  async function holdOnThree(leaseTime?: number) {
    for (const proxy of proxies.slice(3)) {
      proxy.refuse(true);
      proxy.cut();
    }
    const lease = await holder.acquire('a', leaseTime === undefined ? {} : { leaseTime });
    const { owner } = lease;
    expect(await environment.owners('a')).toEqual([owner, owner, owner, undefined, undefined]);
    return lease;
  }

  it.each([
    ['who knows the node', () => rival],
    ['who has not known it before', () => environment.quorum({ leaseTime: LEASE })],
  ])('does not let a second owner in, %s, when it was one of exactly three', async (_, second) => {
    const lease = await holdOnThree(LEASE);
    await environment.node(2).restart();
    // Three of five are free now: the one that has forgotten it, and two that never knew.
    const locks = second();
    // Connects, so that the first try is no longer than the lease on a busy machine.
    await locks.health();
    const tries: unknown[] = [];
    const trying = (async () => {
      for (;;) {
        const got = await locks.tryAcquire('a').catch(() => null);
        // Looked at in the same turn.
        const both = got !== null && lease.held;
        tries.push(got);
        if (got !== null) return both;
        await sleep(20);
      }
    })();
    for (const proxy of proxies.slice(3)) proxy.refuse(false);
    expect(await trying).toBe(false);
    expect(tries[0]).toBeNull();
    expect(lease.signal.aborted).toBe(true);
  });

  it('takes the lock with it when it was one of exactly three, which is told, and nothing stays behind', async () => {
    const lease = await holdOnThree();
    await environment.node(2).restart();
    for (const proxy of proxies.slice(3)) proxy.refuse(false);
    await until(() => lease.signal.aborted);
    expect(lease.held).toBe(false);
    // Also where it was just renewed.
    await environment.isFreeEverywhere('a');
  });
});
