import { describe, expect, it } from '@jest/globals';
import { history, hold, lagging } from './histories.js';
import { order } from './order.js';

const fair = (invoked: number, granted: number, told = {}) =>
  hold(granted, { kind: 'fair', invoked, ...told });

describe('order', () => {
  it('finds whoever was served before somebody who came earlier', () => {
    expect(order(history([fair(0, 1_000), fair(600, 1_100)]))).toEqual([]);
    expect(order(history([fair(0, 1_100), fair(600, 1_000)]))).toHaveLength(1);
  });

  it('does not judge those who came at about the same time, nor plain locks', () => {
    expect(order(history([fair(0, 1_100), fair(100, 1_000)]))).toEqual([]);
    expect(order(history([fair(0, 1_100, { kind: 'lock' }), fair(600, 1_000, { kind: 'lock' })]))).toEqual(
      [],
    );
  });

  it('goes by the tokens, which are in the order of the store', () => {
    expect(order(history([fair(0, 1_001, { token: 1 }), fair(600, 1_000, { token: 2 })]))).toEqual([]);
  });

  it('does not judge the tokens of those who share a lock and enter together', () => {
    const permit = (invoked: number, granted: number, token: number) =>
      fair(invoked, granted, { kind: 'semaphore', mode: 'shared', capacity: 3, token });
    expect(order(history([permit(0, 1_001, 2), permit(600, 1_000, 1)]))).toEqual([]);
    expect(order(history([permit(0, 1_400, 2), permit(600, 1_000, 1)]))).toHaveLength(1);
  });

  it('excuses whose process did not run or could not reach the store', () => {
    const holds = [fair(0, 1_100), fair(600, 1_000, { process: 'B' })];
    expect(order(history(holds, { processes: lagging('A', 100, 800) }))).toEqual([]);
    expect(order(history(holds, { server: { lags: [{ from: 100, to: 800 }] } }))).toEqual([]);
    const fault = { fault: 'cut', severity: 'outage', from: 100, to: 200 } as const;
    expect(order(history(holds, { faults: [fault] }))).toEqual([]);
    expect(order(history(holds, { faults: [{ ...fault, process: 'A' }] }))).toEqual([]);
    expect(order(history(holds, { faults: [{ ...fault, process: 'B' }] }))).toHaveLength(1);
  });
});
