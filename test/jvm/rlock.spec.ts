import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { describeOnJvm } from './describe-jvm.js';
import type { LockThread } from './lock-thread.js';
import { Pair, PAIRS } from './pairs.js';
import { Stage } from './stage.js';

/** ms */
const WATCHDOG = 30_000;
const HOUR = 3_600_000;
/** For commands on a busy machine, ms. */
const SLACK = 10_000;

/** What Redisson's tests of RLock ask for, with one of two threads in a Node process. */
describeOnJvm('The words of RLock, between a JVM and a Node process', () => {
  const stage = new Stage();
  let pair: Pair;
  let count = 0;

  beforeAll(async () => {
    pair = await Pair.open(stage, WATCHDOG);
  });

  afterAll(() => stage.end());

  describe.each(PAIRS)('%s holds, %s looks on', (holding, looking) => {
    let holder: LockThread;
    let other: LockThread;
    /** Of the holder's process. */
    let neighbour: LockThread;
    let name: string;

    beforeEach(() => {
      name = `rlock:${String(count++)}`;
      holder = pair.thread(holding, 'holder');
      neighbour = pair.thread(holding, 'neighbour');
      other = pair.thread(looking, 'other');
    });

    it('isLocked is the same for all while the lock is held, and after', async () => {
      for (const caller of [holder, neighbour, other]) expect(await caller.isLocked(name)).toBe(false);
      await holder.lock(name);
      for (const caller of [holder, neighbour, other]) expect(await caller.isLocked(name)).toBe(true);
      await holder.unlock(name);
      for (const caller of [holder, neighbour, other]) expect(await caller.isLocked(name)).toBe(false);
    });

    it('isHeldByCurrentThread is true for the holder only', async () => {
      expect(await holder.isHeld(name)).toBe(false);
      await holder.lock(name);
      expect(await holder.isHeld(name)).toBe(true);
      expect(await neighbour.isHeld(name)).toBe(false);
      expect(await other.isHeld(name)).toBe(false);
      await holder.unlock(name);
      expect(await holder.isHeld(name)).toBe(false);
    });

    it('getHoldCount counts what the holder has entered, and nothing for others', async () => {
      expect(await holder.holdCount(name)).toBe(0);
      for (const entered of [1, 2, 3]) {
        await holder.lock(name);
        expect(await holder.holdCount(name)).toBe(entered);
        expect(await neighbour.holdCount(name)).toBe(0);
        expect(await other.holdCount(name)).toBe(0);
      }
      for (const left of [2, 1, 0]) {
        await holder.unlock(name);
        expect(await holder.holdCount(name)).toBe(left);
      }
      expect(await other.isLocked(name)).toBe(false);
    });

    it('a hold that was entered twice keeps both others away until its last unlock', async () => {
      expect(await holder.tryLock(name)).toBe(true);
      expect(await holder.tryLock(name)).toBe(true);
      await holder.unlock(name);
      expect(await neighbour.tryLock(name)).toBe(false);
      expect(await other.tryLock(name)).toBe(false);
      await holder.unlock(name);
      expect(await other.tryLock(name)).toBe(true);
      expect(await neighbour.tryLock(name)).toBe(false);
      await other.unlock(name);
    });

    it('an unlock without a hold is refused, and takes nothing from the holder', async () => {
      await holder.lock(name);
      await expect(other.unlock(name)).rejects.toThrow();
      await expect(neighbour.unlock(name)).rejects.toThrow();
      expect(await holder.isHeld(name)).toBe(true);
      expect(await other.tryLock(name)).toBe(false);
      await holder.unlock(name);
      await expect(holder.unlock(name)).rejects.toThrow();
      await other.lock(name);
      // Late, and of an owner from before.
      await expect(holder.unlock(name)).rejects.toThrow();
      expect(await other.isHeld(name)).toBe(true);
      await other.unlock(name);
    });

    it('remainTimeToLive is the same for both: a lease, the watchdog, and nothing when the lock is free', async () => {
      await holder.lock(name, HOUR);
      for (const caller of [holder, other]) {
        const left = await caller.remainTimeToLive(name);
        expect(left).toBeGreaterThan(HOUR - SLACK);
        expect(left).toBeLessThanOrEqual(HOUR);
      }
      await holder.unlock(name);
      for (const caller of [holder, other])
        expect(await caller.remainTimeToLive(name)).toBeLessThanOrEqual(0);
      await holder.lock(name);
      for (const caller of [holder, other]) {
        const left = await caller.remainTimeToLive(name);
        expect(left).toBeGreaterThan(WATCHDOG / 2);
        expect(left).toBeLessThanOrEqual(WATCHDOG);
      }
      await holder.unlock(name);
    });

    it('forceUnlock of another process frees a lock however often it was entered, and once', async () => {
      await holder.lock(name);
      await holder.lock(name);
      expect(await other.forceUnlock(name)).toBe(true);
      for (const caller of [holder, other]) expect(await caller.isLocked(name)).toBe(false);
      expect(await other.forceUnlock(name)).toBe(false);
      expect(await other.tryLock(name)).toBe(true);
      // It may not know yet. What it does now changes nothing for the new holder.
      for (let entered = 2; entered > 0; entered--) await holder.unlock(name).catch(() => undefined);
      expect(await other.isHeld(name)).toBe(true);
      await other.unlock(name);
    });
  });
});
