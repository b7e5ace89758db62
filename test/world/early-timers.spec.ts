import { expect, it } from '@jest/globals';
import { inWorld } from './index.js';

/** ms: nearly every timer fires before its moment. */
const EARLINESS = 0.9;

it('timers that fire early end no wait, lease or close too early, and let none go on for ever', () =>
  inWorld(21, async ({ world, process, pass, now, until }) => {
    world.earliness = EARLINESS;
    const [one, other] = [process({ leaseTime: 1_500 }), process({ leaseTime: 1_500 })];
    // A wait that ends, a fixed lease that ends, and the next owner.
    const fixed = await one.locks.acquire('fixed', { leaseTime: 1_000 });
    await expect(other.locks.acquire('fixed', { waitTime: 300 })).rejects.toMatchObject({
      code: 'LOCK_TIMEOUT',
    });
    const next = other.locks.acquire('fixed', { waitTime: 10_000 });
    await until(() => !fixed.held);
    expect((await next).held).toBe(true);
    // A lease that is renewed.
    const renewed = await one.locks.acquire('renewed');
    await pass(6_000);
    expect(renewed.held).toBe(true);
    expect(await other.locks.tryAcquire('renewed')).toBeNull();
    // A callback that never ends.
    void one.locks.using('hangs', () => new Promise(() => undefined)).catch(() => undefined);
    await until(async () => (await other.locks.inspect('hangs')) !== null);
    const begun = now();
    await one.locks.close();
    expect(now() - begun).toBeGreaterThan(1_400);
    expect(await other.locks.acquire('hangs')).toMatchObject({ held: true });
  }));
