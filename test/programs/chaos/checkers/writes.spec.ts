import { describe, expect, it } from '@jest/globals';
import { history, hold, lagging } from './histories.js';
import { writes } from './writes.js';

const write = (at: number, told: Parameters<typeof hold>[1] = {}) =>
  hold(0, { releaseFrom: undefined, writes: [{ before: at, at }], ...told });

describe('writes', () => {
  it('allows writes before the deadline, and none after it', () => {
    expect(
      writes(
        history([
          write(50, {
            deadlines: [
              { at: 0, until: 97 },
              { at: 50, until: 97 },
            ],
          }),
        ]),
      ),
    ).toEqual([]);
    expect(
      writes(
        history([
          write(99, {
            deadlines: [
              { at: 0, until: 97 },
              { at: 99, until: 97 },
            ],
          }),
        ]),
      ),
    ).toHaveLength(1);
  });

  it('allows none after the loss was announced, or after the release', () => {
    expect(writes(history([write(50, { lost: 40 })]))[0]?.message).toContain('told of the loss');
    expect(writes(history([write(50, { releaseFrom: 40 })]))[0]?.message).toContain('after its release');
  });

  it('finds a promise of more than the lease', () => {
    const promised = (at: number, until: number, told = {}) =>
      writes(history([hold(0, { deadlines: [{ at, until }], ...told })]));
    expect(promised(0, 97)).toEqual([]);
    expect(promised(0, 100)).toHaveLength(1);
    expect(promised(60, 157)).toEqual([]);
    // A fixed lease counts from its grant, however late one looks.
    expect(promised(60, 157, { renewed: false })).toHaveLength(1);
    const extensions = [{ from: 50, to: 55, outcome: 'ok', leaseTime: 200 }] as const;
    expect(promised(60, 250, { extensions })).toEqual([]);
    expect(promised(60, 270, { extensions })).toHaveLength(1);
  });

  it('finds a lease that was over when it was granted, unless the process did not run', () => {
    const over = hold(500, { deadlines: [{ at: 500, until: 500 }] });
    expect(writes(history([over]))).toHaveLength(1);
    expect(writes(history([over], { processes: lagging('A', 450, 499) }))).toEqual([]);
  });
});
