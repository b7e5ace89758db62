import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Hints } from '../../../lib/stores/quorum/hints.js';

describe('Hints', () => {
  let passed: string[];
  let hints: Hints;

  beforeEach(() => {
    jest.useFakeTimers();
    passed = [];
    hints = new Hints(5, (owner) => passed.push(owner));
  });

  afterEach(() => {
    hints.close();
    jest.useRealTimers();
  });

  it('are passed on with the message that makes a majority', () => {
    for (const member of [0, 0, 1]) hints.add(member, 'a:1');
    hints.add(2, 'a:2');
    expect(passed).toEqual([]);
    hints.add(2, 'a:1');
    expect(passed).toEqual(['a:1']);
    for (const member of [2, 3, 4]) hints.add(member, 'a:1');
    expect(passed).toEqual(['a:1']);
    jest.advanceTimersByTime(50);
    expect(passed).toEqual(['a:1', 'a:2']);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('are passed on once for each loss of an owner', () => {
    const lose = () => {
      for (const member of [0, 1, 2]) hints.add(member, 'a:1');
      jest.advanceTimersByTime(50);
    };
    lose();
    expect(passed).toEqual(['a:1']);
    lose();
    expect(passed).toEqual(['a:1', 'a:1']);
  });

  it('are not passed on after the subscription has ended', () => {
    hints.add(0, 'a:1');
    hints.close();
    jest.advanceTimersByTime(50);
    expect(passed).toEqual([]);
  });
});
