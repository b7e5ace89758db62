import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import type { Quorum } from '../../../lib/stores/quorum/quorum.js';
import { WakeUp } from '../../../lib/stores/quorum/wake-up.js';

/** ms after which a message that was alone has been acted on. */
const SETTLED = 25;

describe('WakeUp', () => {
  let woken: number;
  let voting: Set<number>;
  let wakeUp: WakeUp;

  beforeEach(() => {
    jest.useFakeTimers();
    woken = 0;
    voting = new Set([0, 1, 2, 3, 4]);
    wakeUp = made();
  });

  afterEach(() => {
    jest.useRealTimers();
    jest.restoreAllMocks();
  });

  const made = () => {
    const charters = { votes: (member: number) => voting.has(member) };
    return new WakeUp({ charters, needed: 3 } as unknown as Quorum, () => woken++);
  };
  const hear = (...members: number[]) => {
    for (const member of members) wakeUp.tell(member);
  };

  /** The same messages again and again. */
  const hearEach = (ms: number, times: number, ...members: number[]) => {
    for (let n = 0; n < times; n++) {
      hear(...members);
      jest.advanceTimersByTime(ms);
    }
  };

  it('wakes once for the messages of one release, with the one that makes a majority', () => {
    hear(0, 1);
    expect(woken).toBe(0);
    hear(2);
    expect(woken).toBe(1);
    hear(3, 4);
    jest.advanceTimersByTime(SETTLED);
    expect(woken).toBe(1);
  });

  it.each([[[0]], [[0, 1]]])('wakes for a minority (%p) a moment later', (members) => {
    hear(...members);
    expect(woken).toBe(0);
    jest.advanceTimersByTime(SETTLED);
    expect(woken).toBe(1);
  });

  it('wakes ever more rarely for a minority, however many messages it sends', () => {
    hearEach(1, 2_000, 3, 4);
    expect(woken).toBeGreaterThan(4);
    expect(woken).toBeLessThan(15);
  });

  it('takes members that do not vote for no part of a majority', () => {
    voting = new Set([0, 1]);
    hearEach(1, 2_000, 0, 1, 2, 3, 4);
    expect(woken).toBeGreaterThan(4);
    expect(woken).toBeLessThan(15);
    voting = new Set([2, 3, 4]);
    jest.advanceTimersByTime(2_000);
    const already = woken;
    hear(4, 3, 2);
    expect(woken).toBe(already + 1);
  });

  it('wakes for a majority that has become one when this process learned of the votes', () => {
    voting = new Set([3, 4]);
    hear(0);
    jest.advanceTimersByTime(SETTLED);
    const already = woken;
    hear(0, 1, 2, 3, 4);
    voting = new Set([0, 1, 2, 3, 4]);
    jest.advanceTimersByTime(2_000);
    expect(woken).toBe(already + 1);
  });

  it('takes the messages of nodes that are far apart for a majority, however long it would rest for fewer', () => {
    hearEach(SETTLED, 100, 3);
    // It has just woken, and the rest that begins is the longest.
    const before = woken;
    while (woken === before) hearEach(1, 1, 3);
    const already = woken;
    for (const member of [0, 1, 2]) {
      expect(woken).toBe(already);
      hear(member);
      if (member < 2) jest.advanceTimersByTime(2 * SETTLED);
    }
    expect(woken).toBe(already + 1);
    jest.advanceTimersByTime(2 * SETTLED);
    expect(woken).toBe(already + 1);
  });

  it('never misses a majority, whatever messages came before', () => {
    const member = fc.integer({ min: 0, max: 4 });
    const majority = fc.shuffledSubarray([0, 1, 2, 3, 4], { minLength: 3 });
    const step = fc.oneof(member, fc.constant('pause' as const));
    fc.assert(
      fc.property(fc.array(step), majority, (before, release) => {
        const one = made();
        const heardOnce = new Set<number>();
        for (const what of before) {
          if (what === 'pause') jest.advanceTimersByTime(SETTLED);
          else one.tell(what);
          if (what === 'pause') heardOnce.clear();
          else heardOnce.add(what);
        }
        const already = woken;
        for (const node of release) one.tell(node);
        jest.advanceTimersByTime(SETTLED);
        // Where a whole release had just woken, and this one's messages may be its last ones, once is enough.
        const mayBeTheSame = heardOnce.size >= 3;
        if (!mayBeTheSame) expect(woken).toBeGreaterThan(already);
      }),
      // Messages before the first pause count for a majority that the last one completes.
      {
        examples: [
          [
            [0, 'pause', 2, 0, 'pause', 1],
            [3, 0, 2],
          ],
        ],
      },
    );
  });

  it('wakes again for a release of the same majority at any time after a whole one', () => {
    const majority = () => fc.shuffledSubarray([0, 1, 2, 3, 4], { minLength: 3, maxLength: 3 });
    fc.assert(
      fc.property(majority(), majority(), (first, second) => {
        const one = made();
        for (const node of first) one.tell(node);
        const already = woken;
        for (const node of second) one.tell(node);
        jest.advanceTimersByTime(SETTLED);
        expect(woken).toBeGreaterThan(already);
      }),
    );
  });
});
