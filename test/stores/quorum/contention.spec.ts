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

  it('asks all members at once where no vote was split', () => {
    expect(asksOneFirst('a')).toBe(false);
    contention.granted(['a']);
    contention.taken(['a'], 'x:1', true);
    contention.woken('a');
    expect(asksOneFirst('a')).toBe(false);
  });

  it('asks one member first for a second after a split vote, for each of its names', () => {
    contention.split(['a', 'b']);
    expect([asksOneFirst('a'), asksOneFirst('b'), asksOneFirst('c'), asksOneFirst('b', 'c')]).toEqual([
      true,
      true,
      false,
      true,
    ]);
    pass(999);
    expect(asksOneFirst('a')).toBe(true);
    pass(1);
    expect(asksOneFirst('a')).toBe(false);
  });

  it('asks one member first where several processes may have been woken', () => {
    contention.expect('a');
    expect(asksOneFirst('a')).toBe(true);
  });

  describe('the refusal of one member alone', () => {
    beforeEach(() => {
      contention.expect('a');
      contention.refusedByOne(['a'], 'x:1');
    });

    it('is checked with all others a moment later, as it may be a hold that was left behind', () => {
      expect(asksOneFirst('a')).toBe(true);
      pass(100);
      expect(asksOneFirst('a')).toBe(false);
      // Further ones do not put it off.
      contention.expect('b');
      contention.refusedByOne(['a', 'b'], 'x:1');
      expect(asksOneFirst('a', 'b')).toBe(false);
    });

    it('is out of date when a message has come', () => {
      pass(100);
      contention.woken('a');
      expect(asksOneFirst('a')).toBe(true);
    });

    it('is out of date when several processes may have been woken', () => {
      pass(100);
      contention.expect('a');
      expect(asksOneFirst('a')).toBe(true);
    });

    it('has been checked when a majority has refused', () => {
      pass(100);
      contention.taken(['a'], 'x:1', true);
      expect(asksOneFirst('a')).toBe(true);
    });
  });

  it('knows the holder that a majority has named, in a race', () => {
    contention.taken(['a'], 'x:1', true);
    expect(contention.isHolder(['a'], 'x:1')).toBe(false);
    contention.split(['a']);
    contention.taken(['a'], 'x:1', false);
    expect(contention.isHolder(['a'], 'x:1')).toBe(false);
    contention.taken(['a'], 'x:1', true);
    expect([contention.isHolder(['b', 'a'], 'x:1'), contention.isHolder(['a'], 'x:2')]).toEqual([
      true,
      false,
    ]);
    expect(contention.isHolder(['a'], undefined)).toBe(false);
  });

  it('remembers the last holds that a minority has', () => {
    contention.stray(['a'], 'x:1');
    expect(contention.isStray(['a'], 'x:1')).toBe(false);
    contention.split(['a']);
    expect(contention.knows(['b', 'a'])).toBe(true);
    for (let n = 0; n < 15; n++) contention.stray(['a'], `x:${String(n)}`);
    contention.stray(['a'], undefined);
    expect(contention.isStray(['b', 'a'], 'x:14')).toBe(true);
    expect(contention.isStray(['a'], 'x:5')).toBe(true);
    expect(contention.isStray(['a'], 'x:0')).toBe(false);
    expect(contention.isStray(['a'], undefined)).toBe(false);
  });

  it('retreats for longer with every further split vote, up to a limit, at random', () => {
    const random = jest.spyOn(Math, 'random').mockReturnValue(0.5);
    const retreats = Array.from({ length: 9 }, () => contention.split(['a']));
    expect(retreats).toEqual([0, 5, 10, 20, 40, 80, 160, 250, 250]);
    contention.granted(['a']);
    expect(contention.split(['a'])).toBe(0);
    random.mockRestore();
  });

  describe('the delay of an attempt', () => {
    /** A message for all, which another client has been quicker to follow. */
    const lose = (holder: string) => {
      contention.woken('a');
      contention.refusedByOne(['a'], holder);
    };
    const delay = () => contention.delayFor(['a']);

    beforeEach(() => {
      contention.expect('a');
    });

    it('is none where there is one rival', () => {
      expect(delay()).toBe(0);
      for (let n = 0; n < 5; n++) {
        contention.refusedByOne(['a'], `x:${String(n)}`);
        expect(delay()).toBe(0);
      }
    });

    it('is the longer the fewer races were lost, and the more rivals there are', () => {
      for (const holder of ['x:1', 'y:1', 'z:1', 'x:2']) contention.refusedByOne(['a'], holder);
      expect(delay()).toBe(2);
      lose('y:2');
      expect(delay()).toBe(1);
      lose('z:2');
      expect(delay()).toBe(0);
      lose('x:3');
      expect(delay()).toBe(0);
      contention.granted(['a']);
      expect(delay()).toBe(2);
    });

    it('counts no refusal that followed no message', () => {
      for (const holder of ['x:1', 'y:1', 'z:1']) contention.refusedByOne(['a'], holder);
      expect(delay()).toBe(2);
    });

    it('counts a race that a majority has decided, and each race once', () => {
      for (const holder of ['x:1', 'y:1', 'z:1', 'v:1']) contention.refusedByOne(['a'], holder);
      expect(delay()).toBe(3);
      contention.woken('a');
      contention.taken(['a'], 'x:2', true);
      expect(delay()).toBe(2);
      lose('y:2');
      contention.refusedByOne(['a'], 'z:2');
      expect(delay()).toBe(1);
    });

    it('counts no race that was won, and is none for a name without a race', () => {
      for (const holder of ['x:1', 'y:1', 'z:1']) contention.refusedByOne(['a'], holder);
      contention.woken('a');
      contention.granted(['a']);
      contention.refusedByOne(['a'], 'y:2');
      expect(delay()).toBe(2);
      expect([contention.delayFor(['b']), contention.delayFor(['b', 'a'])]).toEqual([0, 2]);
    });

    it('has a limit, and forgets rivals', () => {
      for (let n = 0; n < 30; n++) contention.refusedByOne(['a'], `client-${String(n)}:1`);
      expect(delay()).toBe(5);
      pass(1_001);
      expect(delay()).toBe(0);
    });
  });

  it('forgets names that are no longer used', () => {
    for (let n = 0; n < 5_000; n++) {
      contention.split([`name-${String(n)}`]);
      pass(1);
    }
    const { races } = contention as unknown as { races: Map<string, unknown> };
    expect(races.size).toBeLessThan(2_500);
  });
});
