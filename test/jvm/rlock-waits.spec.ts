import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { now } from '../scenarios/history.js';
import { describeOnJvm } from './describe-jvm.js';
import type { LockThread } from './lock-thread.js';
import { Pair, PAIRS } from './pairs.js';
import { Stage } from './stage.js';

/** ms */
const WATCHDOG = 1_500;
/** Clocks count whole ms. */
const ROUNDING = 2;

/** What Redisson's tests of RLock ask of waits and leases, with one of two threads in a Node process. */
describeOnJvm('Waits and leases of RLock, between a JVM and a Node process', () => {
  const stage = new Stage();
  let pair: Pair;
  let count = 0;

  beforeAll(async () => {
    pair = await Pair.open(stage, WATCHDOG);
  });

  afterAll(() => stage.end());

  describe.each(PAIRS)('%s holds, %s waits', (holding, waiting) => {
    let holder: LockThread;
    let waiter: LockThread;
    let next: LockThread;
    let name: string;

    beforeEach(() => {
      name = `waits:${String(count++)}`;
      holder = pair.thread(holding, `holder of ${name}`);
      waiter = pair.thread(waiting, `waiter of ${name}`);
      next = pair.thread(waiting, `next of ${name}`);
    });

    it('tryLock waits for as long as it is told, in vain', async () => {
      await holder.lock(name);
      const asked = now();
      expect(await waiter.tryLock(name, { wait: 1_000 })).toBe(false);
      expect(now() - asked).toBeGreaterThanOrEqual(1_000 - ROUNDING);
      expect(await holder.isHeld(name)).toBe(true);
      await holder.unlock(name);
    });

    it('tryLock ends its wait with the unlock, and has the lease that it asked for', async () => {
      const lease = 60_000;
      await holder.lock(name);
      const waits = waiter.tryLock(name, { wait: 30_000, lease });
      await stage.listeners(name);
      await holder.unlock(name);
      expect(await waits).toBe(true);
      const left = await holder.remainTimeToLive(name);
      expect(left).toBeGreaterThan(WATCHDOG);
      expect(left).toBeLessThanOrEqual(lease);
      expect(await holder.tryLock(name)).toBe(false);
      await waiter.unlock(name);
    });

    it('a lease ends by itself, and not before: a waiter has the lock then, and the holder cannot give it back', async () => {
      const lease = 1_200;
      const asked = now();
      await holder.lock(name, lease);
      const granted = await waiter.lock(name);
      expect(granted - asked).toBeGreaterThanOrEqual(lease - ROUNDING);
      expect(await holder.isHeld(name)).toBe(false);
      expect(await holder.holdCount(name)).toBe(0);
      await expect(holder.unlock(name)).rejects.toThrow();
      expect(await waiter.isHeld(name)).toBe(true);
      await waiter.unlock(name);
    });

    it('a waiter that is interrupted ends at once, takes nothing, and stands in no way', async () => {
      await holder.lock(name);
      const waits = expect(waiter.lockInterruptibly(name)).rejects.toThrow();
      await stage.listeners(name);
      await waiter.interrupt();
      await waits;
      expect(await waiter.isHeld(name)).toBe(false);
      expect(await holder.isHeld(name)).toBe(true);
      const wait = next.tryLock(name, { wait: 30_000 });
      await stage.listeners(name);
      await holder.unlock(name);
      expect(await wait).toBe(true);
      await next.unlock(name);
      expect(await holder.isLocked(name)).toBe(false);
      // The thread is as good as before.
      expect(await waiter.tryLock(name)).toBe(true);
      await waiter.unlock(name);
    });

    it('the watchdog renews a hold that was entered and left in part, while others of both sides wait', async () => {
      const rival = pair.thread(holding, `rival of ${name}`);
      await holder.lock(name);
      await holder.lock(name);
      await holder.unlock(name);
      const granted = Promise.all([
        waiter.lock(name).then(giveBack(waiter)),
        rival.lock(name).then(giveBack(rival)),
      ]);
      const begun = now();
      while (now() - begun < 3 * WATCHDOG) {
        expect(await next.isLocked(name)).toBe(true);
        expect(await holder.isHeld(name)).toBe(true);
        await sleep(100);
      }
      expect(await holder.holdCount(name)).toBe(1);
      const released = await holder.unlock(name);
      for (const at of await granted) expect(at).toBeGreaterThanOrEqual(released);
      expect(await next.isLocked(name)).toBe(false);
    });

    const giveBack = (caller: LockThread) => async (granted: number) => {
      await caller.unlock(name);
      return granted;
    };
  });
});
