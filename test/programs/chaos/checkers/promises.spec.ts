import { describe, expect, it } from '@jest/globals';
import type { PromiseNote } from '../history.js';
import { history } from './histories.js';
import { promises } from './promises.js';

type Told = Extract<PromiseNote, { type: 'told' }>;
type Success = Extract<PromiseNote, { type: 'success' }>;

const told = (process: string, number: number, before: number, more: Partial<Told> = {}): PromiseNote => ({
  ...{ type: 'told', process, number, before, at: before + 1, promise: 'election', ...more },
});
const resumed = (process: string, ticket: string): PromiseNote => ({
  type: 'resumed',
  process,
  at: 5,
  ticket,
  token: 1,
});
const success = (
  process: string,
  begun: number,
  worked: number,
  more: Partial<Success> = {},
): PromiseNote => ({
  ...{ type: 'success', process, begun, worked, at: worked + 5, period: 400, ...more },
});

/** Something of each, so that nothing is missed. */
const SOME = [told('A', 1, 0), told('A', 1, 0, { promise: 'lease' }), resumed('A', 'x'), success('A', 0, 10)];
const found = (...notes: PromiseNote[]) =>
  promises(history([], { notes: [...SOME, ...notes] })).map(({ message }) => message);

describe('promises', () => {
  it('says nothing of a run without them, and of one that keeps them', () => {
    expect(promises(history([]))).toEqual([]);
    expect(found(told('B', 2, 10), told('B', 2, 20), told('A', 3, 30), resumed('B', 'y'))).toEqual([]);
    expect(found(success('B', 400, 420), success('A', 830, 900))).toEqual([]);
  });

  it('misses what did not happen', () => {
    expect(promises(history([], { notes: [] }))).toHaveLength(3);
  });

  it.each(['election', 'lease'] as const)('finds a holder that is told after the next (%s)', (promise) => {
    expect(found(told('B', 2, 10, { promise }), told('A', 1, 12, { promise }))).toEqual([
      `${promise}: A was told that it holds 1 after B had been told with 2`,
    ]);
  });

  it('finds a number that two processes have, and keeps elections and leases apart', () => {
    expect(found(told('B', 1, 10))).toHaveLength(1);
    expect(found(told('B', 2, 10), told('A', 1, 12, { promise: 'lease' }))).toEqual([]);
  });

  it('believes a process that was stopped between the question and its line', () => {
    expect(found(told('B', 2, 10), told('A', 1, 5, { at: 500 }))).toEqual([]);
  });

  it('finds a ticket that is resumed twice', () => {
    expect(found(resumed('B', 'x'))).toEqual(['ticket x was resumed by A and by B']);
  });

  it('finds work that succeeds twice in a period', () => {
    expect(found(success('B', 200, 250))).toEqual(['once: B began 190 ms after the success of A']);
    expect(found(success('B', 5, 50))).toHaveLength(1);
  });
});
