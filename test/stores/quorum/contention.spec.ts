import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Contention } from '../../../lib/stores/quorum/contention.js';

describe('Contention', () => {
  let contention: Contention;

  beforeEach(() => {
    jest.useFakeTimers();
    contention = new Contention();
  });

  afterEach(() => {
    jest.useRealTimers();
  });

  const pass = (ms: number) => {
    jest.advanceTimersByTime(ms);
  };
  const asksOneFirst = (...names: string[]) => contention.asksOneFirst(names);

  it('asks all members at once without a split vote', () => {
    expect(asksOneFirst('a')).toBe(false);
    contention.decided(['a'], true);
    contention.refusedByOne(['a']);
    contention.woken('a');
    expect(asksOneFirst('a')).toBe(false);
  });

  it('asks one member first for a second after a split vote, for each of its names', () => {
    contention.expect(['a', 'b']);
    expect([asksOneFirst('a'), asksOneFirst('b'), asksOneFirst('c'), asksOneFirst('b', 'c')]).toEqual([
      true,
      true,
      false,
      true,
    ]);
    pass(999);
    // A message does not make it longer: a process that gets the lock each time hears none.
    contention.woken('a');
    expect(asksOneFirst('a')).toBe(true);
    pass(1);
    expect(asksOneFirst('a')).toBe(false);
  });

  describe('the refusal of one member alone', () => {
    beforeEach(() => {
      contention.expect(['a']);
      contention.refusedByOne(['a']);
    });

    it('is checked with all others a moment later, as it may be a hold that was left behind', () => {
      expect(asksOneFirst('a')).toBe(true);
      pass(50);
      // A further one does not put it off.
      contention.expect(['b']);
      contention.refusedByOne(['a', 'b']);
      pass(50);
      expect(asksOneFirst('a', 'b')).toBe(false);
    });

    it.each([
      [
        'a message has come',
        () => {
          contention.woken('a');
        },
      ],
      [
        'several processes may have been woken',
        () => {
          contention.expect(['a']);
        },
      ],
      [
        'a majority has refused',
        () => {
          contention.decided(['a'], false);
        },
      ],
    ])('is out of date when %s', (_, happens) => {
      pass(100);
      happens();
      expect(asksOneFirst('a')).toBe(true);
    });
  });

  it('asks all members again after a grant that the first member alone has refused', () => {
    contention.expect(['a']);
    contention.refusedByOne(['a']);
    pass(100);
    contention.decided(['a'], true);
    contention.woken('a');
    expect(asksOneFirst('a')).toBe(false);
  });

  it('gives the others a head start after a grant, until another process has been in the way', () => {
    const headStart = () => contention.headStart(['b', 'a']);
    contention.decided(['a'], true);
    expect(headStart()).toBe(0);
    contention.expect(['a']);
    contention.decided(['a'], true);
    contention.expect(['a']);
    expect(headStart()).toBe(5);
    contention.refusedByOne(['a']);
    expect(headStart()).toBe(0);
    contention.decided(['a'], true);
    contention.decided(['a'], false);
    expect(headStart()).toBe(0);
  });

  it('forgets names that are no longer used', () => {
    for (let n = 0; n < 5_000; n++) {
      contention.expect([`name-${String(n)}`]);
      pass(1);
    }
    const { races } = contention as unknown as { races: Map<string, unknown> };
    expect(races.size).toBeLessThan(2_500);
  });
});
