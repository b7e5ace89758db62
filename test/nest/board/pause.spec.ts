import { expect, it } from '@jest/globals';
import { pauseAfter } from '../../../lib/board/feed/pause.js';

it('a look that is quick is followed by the next one after the interval', () => {
  expect(pauseAfter(100, 1_000, false)).toBe(900);
});

it('the looks at a store that is slow take a fifth of the time', () => {
  expect(pauseAfter(2_000, 1_000, false)).toBe(8_000);
});

it('a look in which the process has stood still for an hour is followed by the next one within 20 s', () => {
  expect(pauseAfter(3_600_000, 1_000, false)).toBe(20_000);
});

it('a look that has failed is followed by the next one after the interval, however long it took', () => {
  expect(pauseAfter(100, 1_000, true)).toBe(1_000);
  expect(pauseAfter(60_000, 1_000, true)).toBe(1_000);
});
