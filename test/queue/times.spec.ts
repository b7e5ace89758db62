import { describe, expect, it } from '@jest/globals';
import { CLAIM } from '../../lib/store/index.js';
import { queueLength } from '../world/holds.js';
import { inWorld, type Stage } from '../world/index.js';

/** Two processes, of which the first one holds the fair lock `k`, and the other one waits for it. */
async function begin({ process, until }: Stage, options = {}, own = {}) {
  const [a, b] = [process(), process(own)];
  const holder = await a.locks.getFairLock('k').acquire();
  const waiting = b.locks.getFairLock('k').acquire({ waitTime: 60_000, ...options });
  await until(async () => (await queueLength(a.locks, 'k')) === 1);
  return { a, b, holder, waiting };
}

it('a grant that meets the end of the wait time goes to the next', () =>
  inWorld(1, async (stage) => {
    const { process, pass, now, until } = stage;
    const [a, b] = [process(), process()];
    const lock = a.locks.getFairLock('k');
    for (let run = 0; run < 20; run++) {
      const holder = await lock.acquire();
      const first = lock.tryAcquire({ waitTime: 60 });
      await until(async () => (await queueLength(a.locks, 'k')) === 1);
      const second = b.locks.getFairLock('k').acquire();
      await pass(60 - 20 + 2 * run);
      await holder.release();
      await (await first)?.release();
      const asked = now();
      await (await second).release();
      expect(now() - asked).toBeLessThan(0.9 * CLAIM);
    }
    await until(async () => (await b.locks.inspect('k')) === null);
  }));

describe('A fixed lease that was waited for', () => {
  it('ends at its own time, after which the next gets in', () =>
    inWorld(2, async (stage) => {
      const { a, holder, waiting } = await begin(stage, { leaseTime: 2_500 });
      await holder.release();
      const lease = await waiting;
      const granted = stage.now();
      const next = a.locks.getFairLock('k').acquire({ waitTime: 60_000 });
      await stage.pass(2_300);
      expect(lease.held).toBe(true);
      expect((await a.locks.inspect('k'))?.holders).toMatchObject([{ owner: lease.owner }]);
      await next;
      expect(lease.held).toBe(false);
      expect(stage.now() - granted).toBeGreaterThan(2_450);
      expect(stage.now() - granted).toBeLessThan(2_800);
    }));

  it('can be extended', () =>
    inWorld(3, async (stage) => {
      const { holder, waiting } = await begin(stage, { leaseTime: 1_500 });
      await holder.release();
      const lease = await waiting;
      await lease.extend(20_000);
      await stage.pass(15_000);
      expect(lease.held).toBe(true);
      expect(lease.remainingTime()).toBeGreaterThan(4_000);
    }));
});

it.each([
  ['has just arrived', 0],
  ['has waited for longer than a claim lasts', CLAIM + 200],
])('a holder that %s has its whole lease from the first moment', (_, wait) =>
  inWorld(4, async (stage) => {
    const { b, holder, waiting } = await begin(stage);
    await stage.pass(wait);
    await holder.release();
    const lease = await waiting;
    expect(lease.remainingTime()).toBeGreaterThan(29_000);
    expect(await b.locks.getFairLock('k').remainingTime()).toBeGreaterThan(29_000);
  }),
);

it('maxHoldTime counts from the grant, also where it is shorter than a claim', () =>
  inWorld(5, async (stage) => {
    const { a, b, holder, waiting } = await begin(stage, {}, { maxHoldTime: 200 });
    const next = a.locks.getFairLock('k').acquire();
    await stage.until(async () => (await queueLength(b.locks, 'k')) === 2);
    await holder.release();
    const lease = await waiting;
    const granted = stage.now();
    await stage.until(() => lease.signal.aborted);
    expect(lease.signal.reason).toMatchObject({ reason: 'max-hold' });
    expect(stage.now() - granted).toBeLessThan(220);
    await next;
  }));

it('waiters that may enter together behind a dead holder do so: the first that looks lets in the others', () =>
  inWorld(9, async ({ process, now, until }) => {
    const [dead, { locks }] = [process({ leaseTime: 1_500 }), process()];
    await dead.locks.getReadWriteLock('together').write.acquire();
    const readers = [1, 2, 3].map(() => locks.getReadWriteLock('together').read.acquire());
    await until(async () => (await queueLength(locks, 'together')) === 3);
    dead.crash();
    await readers[0];
    const entered = now();
    expect((await Promise.all(readers)).every(({ held }) => held)).toBe(true);
    expect(now() - entered).toBeLessThan(CLAIM / 2);
  }));

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
