import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, describe, expect, it } from '@jest/globals';
import { PreloadedClock } from '../../support/preloaded-clock.js';
import { QuorumEnvironment } from './quorum-environment.js';

const LEASE = 12_000;
const source = fileURLToPath(new URL('../../programs/chaos/faults/wall-clock.c', import.meta.url));
const clock = PreloadedClock.make(source, 'WALL_CLOCK_OFFSET');
const skipped = clock === undefined ? ' (skipped: its clock needs Linux and a C compiler)' : '';

(skipped === '' ? describe : describe.skip)(`A node whose clock is set forward${skipped}`, () => {
  let environment: QuorumEnvironment;

  afterEach(() => environment.end());

  afterAll(() => {
    clock?.remove();
  });

  it('does not vote earlier after a restart, for a process that has not known it before', async () => {
    environment = await QuorumEnvironment.of(3, clock!.env);
    const [, , way] = await environment.proxies();
    const holder = environment.quorum({ leaseTime: LEASE }, [...environment.urls.slice(0, 2), way!.url]);
    await environment.settled(holder);
    // The third node is out of reach for the holder.
    way!.refuse(true);
    way!.cut();
    const lease = await holder.acquire('a', { leaseTime: LEASE });
    expect(await environment.owners('a')).toEqual([lease.owner, lease.owner, undefined]);

    await environment.node(0).restart();
    clock!.set(10 * (LEASE / 1_000));
    const newcomer = environment.quorum({ leaseTime: LEASE });
    const both: boolean[] = [];
    while (lease.held) {
      const got = await newcomer.tryAcquire('a').catch(() => null);
      // Looked at in the same turn.
      both.push(got !== null && lease.held);
      await got?.release();
      await sleep(20);
    }
    expect(both.length).toBeGreaterThan(0);
    expect(both).not.toContain(true);
    // It is in service nevertheless, and votes when it is old enough.
    const next = await newcomer.acquire('a', { waitTime: 4 * LEASE });
    await next.release();
  });
});
