import { describe, expect, it } from '@jest/globals';
import { fencing } from './fencing.js';
import { history, hold, lossOfData } from './histories.js';

const shared = { kind: 'semaphore', mode: 'shared', capacity: 5 } as const;
const update = (token: number, from: number, to: number) => ({ lock: 'lock', token, from, to });

describe('fencing', () => {
  it('wants tokens to grow from one hold to the next', () => {
    expect(fencing(history([hold(0, { token: 5 }), hold(20, { token: 6 })]))).toEqual([]);
    expect(fencing(history([hold(0, { token: 6 }), hold(20, { token: 5 })])).length).toBeGreaterThan(0);
    // The later one had asked first.
    expect(
      fencing(history([hold(0, { token: 6 }), hold(20, { token: 5, invoked: -5 })])).length,
    ).toBeGreaterThan(0);
  });

  it('leaves out a hold that was over when its process came to look at it', () => {
    const over = hold(20, { token: 5, invoked: -5, deadlines: [{ at: 20, until: 20 }] });
    expect(fencing(history([hold(0, { token: 6 }), over]))).toEqual([]);
    const late = hold(20, { token: 5, invoked: 15, deadlines: [{ at: 20, until: 20 }] });
    expect(fencing(history([hold(0, { token: 6 }), late])).length).toBeGreaterThan(0);
  });

  it('finds a token that is smaller than one long before', () => {
    const holds = [hold(0, { token: 9 }), hold(20, { token: 7 }), hold(40, { token: 8 })];
    expect(fencing(history(holds)).length).toBeGreaterThanOrEqual(2);
  });

  it('wants it of shared holds as well, where one had it before the other asked', () => {
    expect(
      fencing(history([hold(0, { ...shared, token: 6 }), hold(5, { ...shared, token: 5 })])),
    ).toHaveLength(1);
    expect(
      fencing(history([hold(0, { ...shared, token: 6 }), hold(5, { ...shared, token: 5, invoked: -5 })])),
    ).toEqual([]);
  });

  it('finds a token that was given out twice', () => {
    const twice = [hold(0, { ...shared, token: 5 }), hold(1, { ...shared, token: 5, invoked: -5 })];
    expect(fencing(history(twice))).toHaveLength(1);
  });

  it('leaves out holders of what the store has forgotten', () => {
    const owner = 'one tenure';
    const faults = [lossOfData(5, 6)];
    const holds = [hold(0, { owner, token: 5 }), hold(20, { token: 9 }), hold(40, { owner, token: 6 })];
    expect(fencing(history(holds, { faults }))).toEqual([]);
    expect(fencing(history(holds)).length).toBeGreaterThan(0);
  });

  it('leaves out a multi-lock that was handed one of its locks, of what the store has forgotten', () => {
    const faults = [lossOfData(5, 6)];
    const handed = hold(40, { owner: 'a:1,a:2 lock', token: 6 });
    const told = (first: string) =>
      history([hold(0, { owner: first, token: 5 }), hold(20, { token: 9 }), handed], { faults });
    expect(fencing(told('a:1'))).toEqual([]);
    expect(fencing(told('a:3')).length).toBeGreaterThan(0);
  });

  it('finds an update that was lost', () => {
    expect(fencing(history([], { updates: [update(1, 0, 1), update(1, 1, 2), update(3, 2, 3)] }))).toEqual(
      [],
    );
    expect(fencing(history([], { updates: [update(1, 0, 1), update(2, 0, 1)] }))).toHaveLength(1);
    expect(fencing(history([], { updates: [update(2, 0, 1), update(1, 1, 2)] }))).toHaveLength(1);
  });
});
