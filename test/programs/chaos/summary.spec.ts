import { describe, expect, it } from '@jest/globals';
import type { RoundResult } from './round.js';
import { count, GROUPS, type Strikes } from './strikes.js';
import { jestReport, Summary } from './summary.js';

const result = (acquisitions: number, times: number): RoundResult => {
  const strikes: Strikes = {};
  for (const group of GROUPS) count(strikes, group, `something of ${group}`, times);
  return {
    violations: [],
    acquisitions,
    ofSeveral: 0,
    notes: 0,
    handedOver: 0,
    losses: 0,
    deadlocks: 0,
    expected: { overlaps: 0, refused: 0 },
    strikes,
    journals: undefined,
  };
};

describe('Summary', () => {
  it('is content with a long run that struck with everything', () => {
    const summary = new Summary(1);
    summary.add('single', 0, result(60_000, 20));
    summary.add('cluster', 1, result(60_000, 30));
    summary.findShortfalls();
    expect(summary.shortfalls).toEqual([]);
    expect(jestReport(summary).success).toBe(true);
  });

  it('says of a long run what it did too little of, and fails', () => {
    const summary = new Summary(1);
    summary.add('single', 0, result(99_999, 49));
    count(summary.strikes, 'quorum', 'something of quorum');
    summary.findShortfalls();
    expect(summary.shortfalls).toContain('network struck 49 times instead of 50');
    expect(summary.shortfalls).toContain('99999 acquisitions instead of 100000');
    expect(summary.shortfalls.join()).not.toContain('quorum');
    expect(jestReport(summary).success).toBe(false);
  });
});
