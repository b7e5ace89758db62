import { describe, expect, it } from '@jest/globals';
import type { HoldRecord } from '../support/worker.js';
import { longestGap, overlaps, tokensGrow } from './history.js';

const hold = (invoked: number, granted: number, released: number): HoldRecord => ({
  invoked,
  granted,
  released,
  fencingToken: granted,
  lost: false,
});

describe('the judge of histories', () => {
  it('finds nothing wrong with holds that follow each other, in whatever order they are told', () => {
    const records = [hold(0, 20, 30), hold(0, 0, 10), hold(0, 10, 20)];
    expect(overlaps(records)).toEqual([]);
    expect(tokensGrow(records)).toBe(true);
  });

  it('finds holds that overlap, also with one that is not their neighbour', () => {
    const [long, inside, across] = [hold(0, 0, 30), hold(0, 5, 10), hold(0, 20, 40)];
    expect(overlaps([across, inside, long])).toEqual([
      [long, inside],
      [long, across],
    ]);
  });

  it('finds a token that does not grow', () => {
    expect(tokensGrow([hold(0, 0, 10), { ...hold(0, 10, 20), fencingToken: 0 }])).toBe(false);
  });

  it('counts the time between release and grant, but not while no caller waited', () => {
    expect(longestGap([hold(0, 3, 10), hold(0, 17, 20)])).toBe(7);
    expect(longestGap([hold(0, 3, 10), hold(100, 105, 110)])).toBe(5);
    // Two waited from the start, and the one who was served had only just come.
    expect(longestGap([hold(0, 0, 10), hold(99, 100, 110), hold(0, 111, 120)])).toBe(90);
  });
});
