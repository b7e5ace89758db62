import { expect, it } from '@jest/globals';
import { inWorld } from '../world/index.js';

it('the health tells how much time the lease has that ends next, of those that are renewed', () =>
  inWorld(1, async ({ process, pass }) => {
    const { locks } = process();
    const headroom = async () => (await locks.health()).renewalHeadroom;
    await locks.acquire('fixed', { leaseTime: 1_000 });
    expect(await headroom()).toBeUndefined();
    await locks.acquire('long', { leaseTime: 90_000, renew: true });
    const short = await locks.acquire('short', { leaseTime: 9_000, renew: true });
    const left = short.remainingTime();
    const first = await headroom();
    // A request takes some ms.
    expect(first).toBeGreaterThan(left - 50);
    expect(first).toBeLessThanOrEqual(left);
    await pass(2_000);
    expect(await headroom()).toBeLessThan(left - 1_950);
    await pass(20_000);
    expect(await headroom()).toBeGreaterThan(5_000);
  }));
