import { expect, it } from '@jest/globals';
import { SweptMap } from '../../../lib/stores/memory/swept-map.js';

it('A map that forgets what is over stays small, and looks through its values rarely', () => {
  const MANY = 50_000;
  let looks = 0;
  const map = new SweptMap<number>((value) => {
    looks++;
    return value % 10 > 0;
  });
  for (let value = 0; value < MANY; value++) map.set(String(value), value);
  expect(map.size).toBeLessThan((2 * MANY) / 10);
  expect([...map.values()].filter((value) => value % 10 === 0)).toHaveLength(MANY / 10);
  expect(looks).toBeLessThan(4 * MANY);
});

it('A map that forgets what is over keeps a few values, over or not, without a look', () => {
  const map = new SweptMap<number>(() => {
    throw new Error('looked');
  });
  for (let value = 0; value < 1_000; value++) map.set(String(value), value);
  expect(map.size).toBe(1_000);
});
