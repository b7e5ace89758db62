import { describe, expect, it } from '@jest/globals';
import { race } from '../../world/holds.js';
import { inWorld } from '../../world/index.js';
import { longestGap, overlaps, tokensGrow } from '../history.js';

describe('A crowd', () => {
  it('1,000 fresh locks are taken and released one after another, with two commands each', () =>
    inWorld(1, async ({ process, server }) => {
      const { locks } = process();
      await locks.health();
      const before = server.commands;
      for (let n = 0; n < 1_000; n++) await (await locks.acquire(`fresh:${String(n)}`)).release();
      // Each of the two scripts is sent whole once.
      expect(server.commands - before).toBeLessThanOrEqual(2_002);
      expect(server.keys).toEqual([]);
    }));

  it.each([1, 3])('1,000 of %i processes try for 10 ms: exactly one wins', (processes) =>
    inWorld(2, async ({ process }) => {
      const all = Array.from({ length: processes }, () => process());
      await Promise.all(all.map(({ locks }) => locks.health()));
      const leases = await Promise.all(
        Array.from({ length: 1_000 }, (_, n) =>
          all[n % processes]!.locks.tryAcquire('one', { waitTime: 10, leaseTime: 10_000 }),
        ),
      );
      expect(leases.filter((lease) => lease !== null)).toHaveLength(1);
    }),
  );

  it.each([
    [1, 1_000],
    [4, 250],
  ])('%i processes with %i waiters each: all win, never two at once, in the order of tokens', (count, each) =>
    inWorld(3, async (stage) => {
      const all = Array.from({ length: count }, () => stage.process().locks.getLock('all'));
      const records = await race(stage, all, each, { waitTime: 60_000 }, 10);
      expect(records).toHaveLength(1_000);
      expect(overlaps(records)).toEqual([]);
      expect(tokensGrow(records)).toBe(true);
      expect(records.filter(({ lost }) => lost)).toEqual([]);
      expect(longestGap(records)).toBeLessThan(100);
    }),
  );

  it.each([
    ['with hand-off within a process', 16],
    ['with every hand-over through Redis', 0],
  ])('30 of three processes storm one lock 20 times, %s: it never lies idle', (_, localHandoff) =>
    inWorld(4, async (stage) => {
      const stormers = [1, 2, 3].map(() => stage.process({ localHandoff }).locks.getLock('storm'));
      for (let run = 0; run < 20; run++) {
        const records = await race(stage, stormers, 10, { waitTime: Infinity }, 1);
        expect(records).toHaveLength(30);
        expect(overlaps(records)).toEqual([]);
        expect(tokensGrow(records)).toBe(true);
        // Requests and messages take 8 ms at most. A wake-up that is lost costs a claim or a lease.
        expect(longestGap(records)).toBeLessThan(100);
      }
    }),
  );
});
