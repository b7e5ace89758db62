import assert from './assert.js';
import type { StorePeriods } from '../../store/lock-store.js';
import { words } from '../test-framework.js';
import { LEASE, sleep, type Stage, tokenOf, until } from './stage.js';

/** The behaviour of a store with notes of done work beside plain locks. */
export function describePeriods(stage: Stage): void {
  const { it } = words();
  const take = async (name: string, owner: string, leaseTime = LEASE) =>
    tokenOf(await stage.store.acquire({ name, owner, leaseTime }));
  const withPeriods = async (body: (one: StorePeriods, two: StorePeriods) => Promise<void>) => {
    const [one, two] = [stage.store.periods, stage.other.periods];
    if (one !== undefined && two !== undefined) await body(one, two);
  };

  it('notes for the holder that its work is done, for the period, also when the lock is free again', () =>
    withPeriods(async (one, two) => {
      const [name, second] = [stage.freshName(), stage.freshName()];
      assert.equal(await two.recall(name), undefined);
      await take(name, 'a:1');
      const before = performance.now();
      assert.equal(await one.remember({ name, owner: 'a:1', period: 10 * LEASE }), 'held');
      await sleep(50);
      const since = await two.recall(name);
      assert.ok(since !== undefined && since >= 45, String(since));
      assert.ok(since <= performance.now() - before + 5, String(since));
      assert.equal(await two.recall(second), undefined);
      await stage.store.release({ name, owner: 'a:1' });
      assert.ok(((await two.recall(name)) ?? 0) >= 45);
      assert.equal(await stage.other.inspect(name), null);
      // A command that is sent again, and a later success, count from their own time on.
      await take(name, 'b:1');
      const again = performance.now();
      assert.equal(await two.remember({ name, owner: 'b:1', period: 200 }), 'held');
      assert.ok(((await one.recall(name)) ?? Infinity) <= performance.now() - again + 5);
      await until(async () => (await two.recall(name)) === undefined);
      assert.ok(performance.now() - again >= 195, 'forgotten too early');
      await stage.store.release({ name, owner: 'b:1' });
    }));

  it('notes nothing for an owner that does not hold the lock', () =>
    withPeriods(async (one, two) => {
      const name = stage.freshName();
      const note = { name, owner: 'a:1', period: LEASE };
      assert.equal(await one.remember(note), 'deleted');
      await take(name, 'a:1', 50);
      await until(async () => (await stage.other.inspect(name)) === null);
      assert.equal(await one.remember(note), 'deleted');
      await take(name, 'b:1');
      assert.equal(await one.remember(note), 'taken');
      assert.equal(await two.recall(name), undefined);
      await stage.store.release({ name, owner: 'b:1' });
    }));
}
