import { describe, expect, it } from '@jest/globals';
import { ServerClock } from '../../lib/stores/redis/server-clock.js';

const TEN_MINUTES = 600_000;

describe('ServerClock', () => {
  it('takes no date for later than it was', () => {
    const clock = new ServerClock();
    expect(clock.momentOf(50_000, 1_000)).toBe(-Infinity);
    // The command took 10 ms at the most, so a date is at most so much too early.
    clock.learn(50_000, 990);
    expect(clock.momentOf(50_100, 1_200)).toBe(1_089);
    expect(clock.momentOf(50_100, 1_089)).toBe(1_089);
  });

  it.each([
    ['forward', 0, TEN_MINUTES],
    ['back and forward again', -TEN_MINUTES, 0],
  ])(
    'says that it does not know when the clock went %s, instead of taking an old message for a new one',
    (_, first, then) => {
      const clock = new ServerClock();
      clock.learn(50_000 + first, 1_000);
      // Two seconds on its way: the process was paused, and what the message grants is over.
      expect(clock.momentOf(50_100 + then, 3_100)).toBe(-Infinity);
      clock.learn(52_150 + then, 3_150);
      expect(clock.momentOf(52_200 + then, 3_300)).toBe(3_199);
    },
  );
});
