import { describe, expect, it } from '@jest/globals';
import { history, hold, lossOfData, refused } from './histories.js';
import { linearizability } from './linearizability.js';

const shared = { kind: 'semaphore', mode: 'shared', capacity: 2 } as const;
const extended = (from: number, to: number, outcome: 'ok' | 'lost' | 'unknown') => [
  { from, to, outcome, leaseTime: 100 },
];
const holds = (...attempts: Parameters<typeof history>[0]) => linearizability(history(attempts)).length === 0;

describe('linearizability', () => {
  it('lets another one in before a hold that was over when its process came to look at it', () => {
    const other = hold(20, { token: 6, invoked: 15, process: 'B' });
    const over = hold(60, { token: 5, invoked: 0, deadlines: [{ at: 60, until: 60 }] });
    expect(linearizability(history([other, over]))).toEqual([]);
    const held = hold(60, { token: 5, invoked: 0, deadlines: [{ at: 60, until: 70 }] });
    expect(linearizability(history([other, held]))).toHaveLength(1);
  });

  it('explains holds in turn, and not two at once', () => {
    expect(holds(hold(0), hold(20), hold(40))).toBe(true);
    expect(holds(hold(0, { releaseFrom: 50 }), hold(20))).toBe(false);
  });

  it('takes a release for carried out at any time between its start and its end', () => {
    expect(holds(hold(0, { releaseFrom: 10, releaseTo: 30 }), hold(12))).toBe(true);
    expect(holds(hold(0, { releaseFrom: 10, releaseTo: 30 }), refused(20, 25))).toBe(true);
  });

  it('knows that a hold ends by itself at its deadline, and not before', () => {
    expect(holds(hold(0, { releaseFrom: undefined }), hold(98))).toBe(true);
    expect(holds(hold(0, { releaseFrom: undefined }), hold(90))).toBe(false);
  });

  it('knows that a hold is over when its holder is told so, and not before', () => {
    const lost = hold(0, { releaseFrom: 90, lost: 50 });
    const extension = (to: number) => [{ from: 40, to, outcome: 'lost' as const, leaseTime: 100 }];
    expect(holds(lost, hold(52))).toBe(true);
    expect(holds(lost, hold(48))).toBe(false);
    expect(holds({ ...lost, extensions: extension(50) })).toBe(true);
    expect(holds({ ...lost, extensions: extension(48) })).toBe(false);
  });

  it('wants a reason for "taken"', () => {
    expect(holds(hold(0), refused(2, 4))).toBe(true);
    expect(holds(hold(0), refused(20, 30))).toBe(false);
  });

  it('leaves open what became of an attempt without an answer', () => {
    expect(holds(refused(0, 5, { refusal: 'LOCK_UNAVAILABLE' }), refused(20, 30))).toBe(true);
    expect(holds(refused(0, 5, { refusal: 'LOCK_UNAVAILABLE' }), refused(3_000, 3_010))).toBe(false);
  });

  it('accepts the turn of a waiter as the reason, which may come unheard', () => {
    const standing = refused(15, 40);
    expect(holds(hold(0), standing, refused(20, 30))).toBe(true);
    expect(holds(hold(0), { ...standing, call: 'try' }, refused(20, 30))).toBe(false);
    expect(linearizability(history([hold(0), standing, refused(20, 30)], { queues: false }))).toHaveLength(1);
  });

  it('accepts over several nodes that a majority was taken back because of a fault', () => {
    // Its token says that it came after the hold at 40.
    const waiting = hold(60, { invoked: 15, token: 2_000 });
    const attempts = [hold(0), waiting, refused(20, 30), hold(40)];
    const struck = (from: number, severity: 'outage' | 'harmless') =>
      linearizability(
        history(attempts, {
          queues: false,
          faults: [{ fault: 'node stopped', severity, from, to: from + 10 }],
        }),
      );
    expect(struck(30, 'outage')).toEqual([]);
    expect(struck(30, 'harmless')).toHaveLength(1);
    expect(struck(70, 'outage')).toHaveLength(1);
  });

  it('wants tokens in the order of the grants', () => {
    expect(holds(hold(0, { token: 2 }), hold(20, { token: 1 }))).toBe(false);
    // Both asked at the same time, so either may have been first.
    const one = hold(5, { ...shared, token: 2, invoked: 0 });
    expect(holds(one, hold(6, { ...shared, token: 1, invoked: 0 }))).toBe(true);
  });

  it('counts permits and how often a scope has entered', () => {
    expect(holds(hold(0, shared), hold(1, shared))).toBe(true);
    expect(holds(hold(0, shared), hold(1, shared), hold(2, shared))).toBe(false);
    const outer = hold(0, { releaseFrom: 50 });
    const inner = hold(10, { outer: outer.op, call: 'nested', token: outer.token! });
    expect(holds(outer, inner, hold(60))).toBe(true);
    expect(holds(outer, inner, hold(30))).toBe(false);
    expect(holds(outer, { ...inner, invoked: 69, granted: 70, releaseFrom: 72, releaseTo: 73 })).toBe(false);
  });

  it('lets only the holder extend', () => {
    const late = { releaseFrom: undefined, deadlines: [{ at: 0, until: 97 }] };
    expect(holds(hold(0, { releaseFrom: 60, extensions: extended(50, 55, 'ok') }))).toBe(true);
    expect(
      holds(hold(0, { ...late, extensions: extended(150, 160, 'ok') }), hold(110, { releaseFrom: 190 })),
    ).toBe(false);
    expect(
      holds(hold(0, { ...late, extensions: extended(150, 160, 'lost') }), hold(110, { releaseFrom: 190 })),
    ).toBe(true);
    expect(holds(hold(0, { releaseFrom: 60, extensions: extended(50, 55, 'lost') }))).toBe(false);
  });

  it('does not judge what the store has forgotten', () => {
    const faults = [lossOfData(10, 11)];
    const attempts = [hold(0, { releaseFrom: 50 }), hold(20), refused(60, 70)];
    expect(linearizability(history(attempts, { faults }))).toEqual([]);
    expect(linearizability(history(attempts))).toHaveLength(1);
  });
});
