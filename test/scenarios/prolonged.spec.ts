import { expect, it } from '@jest/globals';
import { inWorld } from '../world/index.js';

/** ms */
const LEASE = 400;
/** How much of a lease is promised. */
const PROMISED = LEASE * 0.99 - 2;

it('the next caller of a process is promised no more than its lease, though the one before had extended it', async () => {
  await inWorld(1, async ({ process, pass }) => {
    const { locks } = process({ leaseTime: LEASE });
    const first = await locks.acquire('a');
    const waiting = locks.acquire('a');
    await first.extend(2 * LEASE);
    // The store keeps it for a little longer than a lease that begins now.
    while (first.remainingTime() > LEASE - 1) await pass(1);
    expect(first.remainingTime()).toBeGreaterThan(PROMISED);
    await first.release();
    const next = await waiting;
    expect(next.remainingTime()).toBeLessThanOrEqual(PROMISED);
  });
});
