import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from '@jest/globals';
import type { LockService } from '../../../lib/index.js';
import * as scripts from '../../support/scripts.js';
import { QuorumEnvironment } from './quorum-environment.js';

describe('The commands that each node of a quorum gets', () => {
  const environment = QuorumEnvironment.forEach(5);
  let locks: LockService;

  beforeEach(async () => {
    locks = environment.quorum({ leaseTime: 300_000 });
    await environment.settled(locks);
    for (const node of environment.nodes) {
      for (const { source } of Object.values(scripts)) await node.client().script('LOAD', source);
    }
  });

  /** The names of the commands that each node gets meanwhile. */
  async function sentDuring(run: () => Promise<unknown>): Promise<string[][]> {
    const monitors = await Promise.all(environment.nodes.map((node) => node.monitor()));
    await run();
    await Promise.all(monitors.map((monitor) => monitor.stop()));
    return monitors.map(({ commands }) => commands.flatMap(([name]) => name ?? []));
  }
  const scriptsDuring = async (run: () => Promise<unknown>) =>
    (await sentDuring(run)).map((names) => names.filter((name) => name === 'evalsha').length);

  it('an uncontended cycle: exactly two, also where the answers of a minority come after the release is sent', async () => {
    await (await locks.acquire('warm-up')).release();
    const sent = await sentDuring(async () => {
      for (let n = 0; n < 100; n++) await (await locks.acquire(`alone:${String(n)}`)).release();
      // A release that has no certain effect is repeated after 250 ms, and again later.
      await sleep(600);
    });
    for (const names of sent) {
      expect(names.filter((name) => name !== 'ping')).toEqual(Array.from({ length: 200 }, () => 'evalsha'));
    }
  });

  it('waiters behind a hold that only a majority knows: none wakes the others in a circle', async () => {
    const lease = await locks.acquire('a');
    for (const index of [3, 4]) await environment.node(index).client().del('lock:a');
    const others = [1, 2, 3].map(() => environment.quorum());
    await Promise.all(others.map((other) => environment.settled(other)));
    const sent = await scriptsDuring(async () => {
      const waits = others.map((other) => other.tryAcquire('a', { waitTime: 2_000 }));
      expect(await Promise.all(waits)).toEqual([null, null, null]);
    });
    // Each waiter asks about ten times; a node that grants is also given back what it has granted.
    for (const scripts of sent) expect(scripts).toBeLessThan(150);
    await lease.release();
  });

  it('waiters while a majority that has restarted does not vote: they do not wake each other, nor themselves', async () => {
    const others = [1, 2].map(() => environment.quorum());
    await Promise.all(others.map((other) => environment.settled(other)));
    for (const index of [2, 3, 4]) await environment.node(index).restart();
    const sent = await scriptsDuring(async () => {
      const waits = [locks, ...others].map((other) => other.acquire('a', { waitTime: 2_000 }));
      // As unavailable, or as busy: another waiter may be in the way at the end.
      const statuses = (await Promise.allSettled(waits)).map(({ status }) => status);
      expect(statuses).toEqual(['rejected', 'rejected', 'rejected']);
    });
    for (const scripts of sent) expect(scripts).toBeLessThan(150);
  });
});
