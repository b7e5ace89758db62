import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { type Operation, unexplained } from './search.js';

const find = (operations: readonly Operation<number>[]) =>
  unexplained<number, Operation<number>>(operations, 0, String);

/** A register: writes change it, reads say what it was. */
const write = (value: number, invoked: number, returned: number): Operation<number> => ({
  invoked,
  returned,
  apply: () => value,
});
const read = (value: number, invoked: number, returned: number): Operation<number> => ({
  invoked,
  returned,
  observes: true,
  apply: (state) => (state === value ? state : undefined),
});

/** Every order that agrees with the times, with and without each operation that never returned. */
function explains(operations: readonly Operation<number>[], state: number): boolean {
  if (operations.every(({ returned }) => returned === Infinity)) return true;
  const firstReturn = Math.min(...operations.map(({ returned }) => returned));
  return operations.some((operation) => {
    if (operation.invoked > firstReturn) return false;
    const next = operation.apply(state, 0);
    return (
      next !== undefined &&
      explains(
        operations.filter((other) => other !== operation),
        next,
      )
    );
  });
}

describe('unexplained', () => {
  it('finds an order, or the operation that has none', () => {
    expect(find([write(1, 0, 10), read(1, 5, 8)])).toBeUndefined();
    expect(find([write(1, 0, 10), read(0, 5, 8)])).toBeUndefined();
    const stale = read(0, 11, 12);
    expect(find([write(1, 0, 10), stale])).toBe(stale);
  });

  it('does not let what was seen be undone', () => {
    const back = read(0, 8, 9);
    expect(find([write(1, 0, 20), read(1, 5, 7), back])).toBe(back);
  });

  it('lets an operation that never returned take effect at any time, or never', () => {
    expect(find([write(1, 0, Infinity), read(0, 50, 60), read(1, 70, 80)])).toBeUndefined();
    expect(find([write(1, 0, Infinity), read(1, 50, 60), read(0, 70, 80)])).toBeDefined();
  });

  it('agrees with trying every order', () => {
    const operation = fc
      .record({
        kind: fc.constantFrom(write, read),
        value: fc.integer({ min: 0, max: 2 }),
        invoked: fc.integer({ min: 0, max: 20 }),
        lasts: fc.oneof(fc.integer({ min: 1, max: 15 }), fc.constant(Infinity)),
      })
      .map(({ kind, value, invoked, lasts }) => kind(value, invoked, invoked + lasts));
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 6 }), (operations) => {
        expect(find(operations) === undefined).toBe(explains(operations, 0));
      }),
      { numRuns: 2_000 },
    );
  });
});
