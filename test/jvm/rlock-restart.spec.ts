import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { until } from '../scenarios/until.js';
import type { RedisServer } from '../support/redis-server.js';
import { describeOnJvm } from './describe-jvm.js';
import type { LockThread } from './lock-thread.js';
import { Pair, PAIRS } from './pairs.js';
import { Stage } from './stage.js';

/** ms */
const WATCHDOG = 2_000;

/** A client of either side connects again by itself, and until then its commands fail. */
async function afterReconnection<T>(ask: () => Promise<T>): Promise<T> {
  let answer: { value: T } | undefined;
  await until(async () => {
    answer = await ask().then(
      (value) => ({ value }),
      () => undefined,
    );
    return answer !== undefined;
  }, 30_000);
  return answer!.value;
}

describeOnJvm('A server that restarts empty, below a JVM and a Node process', () => {
  const stage = new Stage();
  let server: RedisServer;
  let pair: Pair;

  beforeAll(async () => {
    server = await stage.open();
    pair = await Pair.open(stage, WATCHDOG);
  });

  afterAll(() => stage.end());

  async function holdsFor(caller: LockThread, others: readonly LockThread[], name: string): Promise<void> {
    await afterReconnection(() => caller.lock(name));
    await sleep(2 * WATCHDOG);
    expect(await caller.isHeld(name)).toBe(true);
    for (const other of others) expect(await afterReconnection(() => other.tryLock(name))).toBe(false);
    await caller.unlock(name);
  }

  it.each(PAIRS)(
    '%s has lost its hold and renews the next one, and %s gets and renews its own',
    async (one, two) => {
      const name = `lost by ${one}`;
      const [holder, other] = [pair.thread(one, 'holder'), pair.thread(two, 'other')];
      await afterReconnection(() => holder.lock(name));
      await server.restart();
      await afterReconnection(() => other.isLocked(name));
      // By then the renewal was refused on either side.
      await sleep(2 * WATCHDOG);
      expect(await afterReconnection(() => holder.isHeld(name))).toBe(false);
      await expect(holder.unlock(name)).rejects.toThrow();
      // No renewal of before is left that brings a lock back which was given back.
      for (const caller of [other, holder]) {
        await holdsFor(
          caller,
          [holder, other].filter((each) => each !== caller),
          name,
        );
        expect(await server.client().exists(name)).toBe(0);
      }
      await sleep(WATCHDOG);
      expect(await server.client().exists(name)).toBe(0);
    },
  );

  it.each(PAIRS)('%s holds and %s waits: the waiter gets the lock', async (one, two) => {
    const name = `awaited by ${two}`;
    const [holder, waiter] = [pair.thread(one, 'holder'), pair.thread(two, 'waiter')];
    await holder.lock(name);
    const waits = waiter.tryLock(name, { wait: 60_000 });
    await stage.listeners(name);
    await server.restart();
    expect(await waits.catch(() => waiter.tryLock(name, { wait: 60_000 }))).toBe(true);
    expect(await waiter.isHeld(name)).toBe(true);
    await waiter.unlock(name);
  });
});
