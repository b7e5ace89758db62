import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Attempt } from '../history.js';
import { exclusion, overlaps } from './exclusion.js';
import { history, hold, lossOfData } from './histories.js';

const reader = { kind: 'read-write', mode: 'shared', capacity: 1e9 } as const;
const writer = { kind: 'read-write', mode: 'exclusive', capacity: 1e9 } as const;
const permit = { kind: 'semaphore', mode: 'shared', capacity: 2 } as const;

describe('exclusion', () => {
  it('finds two that hold at the same time, and not two that hold in turn', () => {
    expect(exclusion(history([hold(0), hold(5)]))).toHaveLength(1);
    expect(exclusion(history([hold(0), hold(10)]))).toEqual([]);
    expect(exclusion(history([hold(0), hold(5, { lock: 'other' })]))).toEqual([]);
  });

  it('takes a hold to last until its release, its loss or its deadline, whichever is first', () => {
    expect(exclusion(history([hold(0, { releaseFrom: 50 }), hold(49)]))).toHaveLength(1);
    expect(exclusion(history([hold(0, { releaseFrom: 50, lost: 20 }), hold(30)]))).toEqual([]);
    expect(exclusion(history([hold(0, { releaseFrom: undefined }), hold(96)]))).toHaveLength(1);
    expect(exclusion(history([hold(0, { releaseFrom: undefined }), hold(98)]))).toEqual([]);
  });

  it('sees a long hold behind a short one', () => {
    expect(
      exclusion(history([hold(0, { releaseFrom: 90 }), hold(20, { kind: 'fair', lock: 'x' }), hold(60)])),
    ).toHaveLength(1);
  });

  it('lets readers in together, and no writer with them', () => {
    expect(exclusion(history([hold(0, reader), hold(1, reader), hold(2, reader)]))).toEqual([]);
    expect(exclusion(history([hold(0, reader), hold(1, writer)]))).toHaveLength(1);
    expect(exclusion(history([hold(0, writer), hold(1, reader)]))).toHaveLength(1);
  });

  it('counts permits', () => {
    expect(exclusion(history([hold(0, permit), hold(1, permit)]))).toEqual([]);
    expect(exclusion(history([hold(0, permit), hold(1, permit), hold(2, permit)]))).toHaveLength(1);
  });

  it('does not take an owner that enters again for another', () => {
    const outer = hold(0, { releaseFrom: 50 });
    expect(exclusion(history([outer, hold(10, { outer: outer.op, call: 'nested' })]))).toEqual([]);
  });

  describe('after a loss of data', () => {
    const faults = [lossOfData(10, 11)];
    const forgotten = hold(0, { releaseFrom: undefined, lost: 45 });

    it('tells an overlap that it explains from one that it does not', () => {
      const explained = history([forgotten, hold(20)], { faults });
      expect(overlaps(explained)[0]?.explainedBy).toBe(faults[0]);
      expect(exclusion(explained)).toEqual([]);
      // Before it, after it for one that began later, and of another lock.
      expect(exclusion(history([hold(0), hold(5)], { faults }))).toHaveLength(1);
      expect(exclusion(history([hold(12), hold(15)], { faults }))).toHaveLength(1);
      expect(
        exclusion(history([forgotten, hold(20)], { faults: [{ ...faults[0]!, lock: 'other' }] })),
      ).toHaveLength(1);
    });

    it('explains what a hand-off passes on that the store has forgotten', () => {
      const owner = 'one tenure';
      const first = hold(0, { owner });
      const next = hold(15, { owner, releaseFrom: 30 });
      expect(exclusion(history([first, next, hold(20)], { faults }))).toEqual([]);
    });

    it('wants the holder to be told by the next renewal', () => {
      const leaseTime = 3_000;
      const late = hold(0, {
        leaseTime,
        lost: 2_500,
        releaseFrom: undefined,
        deadlines: [{ at: 0, until: 2_960 }],
      });
      const other = hold(20, { leaseTime, releaseFrom: 2_900, deadlines: [{ at: 20, until: 2_980 }] });
      expect(exclusion(history([late, other], { faults }))[0]?.message).toContain('not announced');
      expect(exclusion(history([{ ...late, lost: 1_000 }, other], { faults }))).toEqual([]);
    });
  });

  it('agrees with looking at every pair', () => {
    const spans = fc.array(fc.tuple(fc.integer({ min: 0, max: 300 }), fc.integer({ min: 1, max: 40 })), {
      maxLength: 12,
    });
    fc.assert(
      fc.property(spans, (drawn) => {
        const holds = drawn.map(([granted, lasts]) => hold(granted, { releaseFrom: granted + lasts }));
        const meet = (a: Attempt, b: Attempt) => a.granted! < b.releaseFrom! && b.granted! < a.releaseFrom!;
        const any = holds.some((a, index) => holds.slice(index + 1).some((b) => meet(a, b)));
        expect(exclusion(history(holds)).length > 0).toBe(any);
      }),
    );
  });
});
