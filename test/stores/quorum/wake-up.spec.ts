import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
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
    wakeUp.close();
    jest.useRealTimers();
    jest.restoreAllMocks();
  });

  const made = () =>
    new WakeUp(
      5,
      (member) => voting.has(member),
      () => woken++,
    );
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

  it('takes a second message of one node for the next release', () => {
    hear(0, 1, 2);
    hear(0, 1, 2);
    expect(woken).toBe(2);
  });

  it('does not lose the release that comes right behind another', () => {
    hear(0, 1, 2, 0);
    jest.advanceTimersByTime(SETTLED);
    expect(woken).toBe(2);
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

  it('forgets no message of a minority that comes while it rests', () => {
    hearEach(SETTLED, 10, 3);
    const already = woken;
    hear(4);
    jest.advanceTimersByTime(1_000);
    expect(woken).toBe(already + 1);
  });

  it('wakes as soon as ever for a majority, and for the next minority, after many of a minority', () => {
    hearEach(SETTLED, 50, 3);
    let already = woken;
    hear(0, 1, 2, 3, 4);
    expect(woken).toBe(already + 1);
    already = woken;
    hear(3);
    jest.advanceTimersByTime(SETTLED);
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
    hear(4);
    jest.advanceTimersByTime(SETTLED);
    expect(woken).toBe(already + 2);
  });

  describe('for a minority, by a certain chance', () => {
    let start: number;

    beforeEach(() => {
      jest.spyOn(Math, 'random').mockReturnValue(0.7);
      start = performance.now();
    });

    const waitUntil = (ms: number) => {
      jest.advanceTimersByTime(start + ms - performance.now());
    };

    /** When it wakes, while one member sends a message every ms for so long, ms. A timer of no time takes one. */
    const wakesDuring = (ms: number) => {
      const times: number[] = [];
      for (let n = 0; n < ms; n++) {
        const before = woken;
        hearEach(1, 1, 3);
        if (woken > before) times.push(performance.now() - start);
      }
      return times;
    };

    it('wakes after pauses that double up to half a second', () => {
      expect(wakesDuring(2_000)).toEqual([18, 36, 60, 108, 204, 396, 780, 1_380, 1_980]);
    });

    it.each([
      ['goes on with the longest pause', 'no more than', 2_463, [2_481, 3_081]],
      ['begins anew', 'more than', 2_464, [2_482, 2_500, 2_524, 2_572, 2_668, 2_860]],
    ])('%s after %s half a second of silence beyond its rest', (_, __, next, wakes) => {
      wakesDuring(1_200);
      // It wakes once more for that, and rests until 1980.
      waitUntil(next);
      expect(wakesDuring(700)).toEqual(wakes);
    });

    it('wakes once for the messages that make a majority while it rests, and begins anew after that', () => {
      wakesDuring(1_200);
      const already = woken;
      hear(0, 1);
      jest.advanceTimersByTime(1_000);
      expect(woken).toBe(already + 1);
      start = performance.now();
      expect(wakesDuring(100)).toEqual([18, 36, 60]);
    });

    it('says nothing after it was closed while it rested', () => {
      wakesDuring(130);
      const already = woken;
      wakeUp.close();
      jest.advanceTimersByTime(1_000);
      expect(woken).toBe(already);
      expect(jest.getTimerCount()).toBe(0);
    });
  });

  it('says nothing after it was closed', () => {
    hear(0);
    wakeUp.close();
    jest.advanceTimersByTime(SETTLED);
    expect(woken).toBe(0);
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
        one.close();
      }),
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
        one.close();
      }),
    );
  });
});
