import { describe, expect, it } from '@jest/globals';
import type { Attempt } from '../history.js';
import { history, hold, lagging, lossOfData } from './histories.js';
import { severals } from './severals.js';

const bounds = { recovery: 3_000, prompt: 300, perDead: 0 };

/** One call of B for a and b, which is granted at last. */
const call = (invoked: number, granted: number): Attempt[] =>
  ['a', 'b'].map((lock) => hold(granted, { process: 'B', lock, call: 'try', several: 7, invoked }));

const held = (lock: string, from: number, to: number) => hold(from, { lock, releaseFrom: to, releaseTo: to });

describe('severals', () => {
  it('finds a call that waits while all of its locks are free', () => {
    expect(severals(history(call(0, 300)), bounds)).toEqual([]);
    expect(severals(history(call(0, 310)), bounds)).toHaveLength(1);
  });

  it('lets a call wait as long as one of them is held', () => {
    const busy = [held('a', 100, 600), held('b', 500, 1_000)];
    expect(severals(history([...busy, ...call(0, 1_200)]), bounds)).toEqual([]);
    expect(severals(history([...busy, ...call(0, 1_400)]), bounds)).toHaveLength(1);
    // Others are not in its way.
    expect(severals(history([held('c', 0, 1_000), ...call(0, 1_000)]), bounds)).toHaveLength(1);
  });

  it('finds a call that never has its turn beside steady queues', () => {
    const steady = (until: number) =>
      Array.from({ length: until / 100 }, (_, index) => held('a', index * 100 + 1, index * 100 + 99));
    expect(severals(history([...steady(5_900), ...call(0, 5_900)]), bounds)).toEqual([]);
    expect(severals(history([...steady(6_100), ...call(0, 6_100)]), bounds)).toHaveLength(1);
    const without = { queues: false, drained: 20_000, processes: new Map() };
    expect(severals(history([...steady(11_900), ...call(0, 11_900)], without), bounds)).toEqual([]);
    expect(severals(history([...steady(12_100), ...call(0, 12_100)], without), bounds)).toHaveLength(1);
  });

  it('allows a lease after the last fault, and the time for which a process did not run', () => {
    const faults = [lossOfData(0, 1_000)];
    expect(severals(history(call(0, 3_900), { faults, healed: 1_000 }), bounds)).toEqual([]);
    expect(severals(history(call(0, 4_100), { faults, healed: 1_000 }), bounds)).toHaveLength(1);
    expect(severals(history(call(0, 700), { processes: lagging('B', 100, 600) }), bounds)).toEqual([]);
  });
});
