import { expect, it } from '@jest/globals';
import { type Call, Lane } from '../../../lib/stores/redis/commands/lane.js';
import { acquire } from '../../../lib/stores/redis/commands/script.js';

const settle = () => undefined;

/** A lane, and the groups that it has sent, each call by its first key. */
function open() {
  const sent: string[][][] = [];
  const lane = new Lane((groups) => sent.push(groups.map((calls) => calls.map(({ keys }) => keys[0] ?? ''))));
  const add = (name: string, group = 0, keys = 1) => {
    const call: Call = {
      ...{ script: acquire, args: [], acquisition: undefined, until: Infinity, asking: false },
      ...{ keys: Array.from({ length: keys }, () => name), group, resolve: settle, reject: settle },
    };
    lane.add(call);
  };
  const addMany = (count: number, keys?: number) => {
    for (let n = 0; n < count; n++) add(String(n), 0, keys);
  };
  return { lane, sent, add, addMany };
}

const turn = () => new Promise(setImmediate);

it('calls of one turn are sent at its end, once, each group in the order of its calls', async () => {
  const { lane, sent, add } = open();
  expect(lane.isEmpty).toBe(true);
  add('a', 1);
  add('b', 2);
  add('c', 1);
  expect([lane.isEmpty, sent]).toEqual([false, []]);
  await turn();
  expect([lane.isEmpty, sent]).toEqual([true, [[['a', 'c'], ['b']]]]);
  add('d', 3);
  add('e', 3);
  lane.flush();
  lane.flush();
  expect(sent.slice(1)).toEqual([[['d', 'e']]]);
  await turn();
  expect(sent).toHaveLength(2);
  add('f');
  await turn();
  expect(sent.slice(2)).toEqual([[['f']]]);
});

it('32 calls do not wait for the end of the turn', () => {
  const { sent, addMany } = open();
  addMany(31);
  expect(sent).toEqual([]);
  addMany(1);
  expect(sent.map(([calls]) => calls?.length)).toEqual([32]);
  addMany(31);
  expect(sent).toHaveLength(1);
});

it('128 keys do not wait either, and are counted anew after that', () => {
  const { sent, addMany } = open();
  addMany(1, 127);
  expect(sent).toEqual([]);
  addMany(1);
  expect(sent.map(([calls]) => calls?.length)).toEqual([2]);
  addMany(1, 127);
  expect(sent).toHaveLength(1);
});
