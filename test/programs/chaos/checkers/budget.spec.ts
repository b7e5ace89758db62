import { expect, it } from '@jest/globals';
import { budget } from './budget.js';
import { history, hold } from './histories.js';

it('finds a store that is asked in a loop', () => {
  const holds = Array.from({ length: 100 }, (_, index) => hold(index * 100));
  expect(budget(history(holds, { commands: 210 }))).toEqual([]);
  expect(budget(history(holds, { commands: 5_000 }))).toHaveLength(1);
  expect(budget(history(holds, { commands: 700 }))).toHaveLength(1);
  expect(budget(history(holds, { commands: 700, confirmed: true }))).toEqual([]);
  // A server that was restarted does not remember.
  expect(budget(history(holds))).toEqual([]);
});
