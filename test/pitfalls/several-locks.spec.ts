/**
 * Several locks at once. The numbers are those of a list of defects that reviews found.
 *
 * 46  A waiter for several names listens to one that is not in its way, and sleeps while all are free: on a quorum, see
 *     test/stores/quorum/waiting.spec.ts.
 * 47  A waiting multi-lock keeps others from names that are free; two members with steady queues are never granted both:
 *     that is in test/scenarios/slow/multi-lock.spec.ts.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { Stage } from './stage.js';

const stage = Stage.set();

it('a waiter for several names is told of each of them, whichever is in its way (pitfall 46)', async () => {
  const [holder, waiter] = [stage.service(), stage.service()];
  const names = ['a', 'b', 'c'];
  const leases = await Promise.all(names.map((name) => holder.acquire(name)));
  const waiting = waiter.acquire(names);
  for (const lease of leases) {
    await sleep(50);
    await lease.release();
  }
  expect((await waiting).held).toBe(true);
});

it('a waiting multi-lock keeps no free name from others, and holds nothing (pitfall 47)', async () => {
  const [holder, waiter, other] = [stage.service(), stage.service(), stage.service()];
  const lease = await holder.acquire('a');
  const waiting = waiter.acquire(['a', 'b']);
  // Each try wakes it, so that it is refused again and again.
  for (let n = 0; n < 20; n++) expect(await waiter.tryAcquire(['a', 'b'])).toBeNull();
  for (let n = 0; n < 5; n++) {
    const both = await other.tryAcquire(['b', 'd']);
    expect(both).not.toBeNull();
    await both?.release();
  }
  await lease.release();
  expect((await waiting).held).toBe(true);
});
