import { describe, expect, it } from '@jest/globals';
import { history, hold, lagging, refused } from './histories.js';
import { order } from './order.js';

const fair = (invoked: number, granted: number, told = {}) =>
  hold(granted, { kind: 'fair', invoked, ...told });

describe('order', () => {
  it('finds a caller that was served before an earlier one', () => {
    expect(order(history([fair(0, 1_000), fair(600, 1_100)]))).toEqual([]);
    expect(order(history([fair(0, 1_100), fair(600, 1_000)]))).toHaveLength(1);
  });

  it('does not judge callers that came at about the same time', () => {
    expect(order(history([fair(0, 1_100), fair(100, 1_000)]))).toEqual([]);
  });

  it('goes by the tokens, which are in the order of the store', () => {
    expect(order(history([fair(0, 1_001, { token: 1 }), fair(600, 1_000, { token: 2 })]))).toEqual([]);
  });

  it('does not judge the tokens of callers that share a lock and enter together', () => {
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

describe('order of plain locks', () => {
  const LEASE = { deadlines: [{ at: 0, until: 5_000 }] };
  /** Held for 100 ms unless told otherwise. */
  const plain = (process: string, invoked: number, granted: number, told = {}) =>
    hold(granted, { process, invoked, releaseFrom: granted + 100, ...LEASE, ...told });
  const before = plain('A', 0, 0, { releaseFrom: 999 });

  it('finds a process that is passed by a later one', () => {
    const passed = [before, plain('B', 100, 1_102), plain('C', 600, 1_000)];
    expect(order(history(passed))).toHaveLength(1);
    expect(order(history([before, plain('B', 100, 1_000), plain('C', 600, 1_102)]))).toEqual([]);
    expect(order(history(passed, { queues: false }))).toEqual([]);
  });

  it('finds a process that serves itself again', () => {
    const again = [before, plain('A', 10, 1_002), plain('B', 100, 1_104)];
    expect(order(history(again))).toHaveLength(1);
    // In one tenure, which may go from one caller to the next.
    const batch = [before, plain('A', 10, 1_002, { owner: before.owner }), plain('B', 100, 1_104)];
    expect(order(history(batch))).toEqual([]);
  });

  it('finds a caller that is passed by a later one of its process', () => {
    const owner = 'owner of both';
    const callers = (first: number, second: number) => [
      before,
      plain('B', 100, first, { owner }),
      plain('B', 600, second, { owner }),
    ];
    expect(order(history(callers(1_102, 1_000)))).toHaveLength(1);
    expect(order(history(callers(1_102, 1_000), { queues: false }))).toHaveLength(1);
    expect(order(history(callers(1_000, 1_102)))).toEqual([]);
  });

  it('lets a later caller have the entry of an earlier one of its process that has left', () => {
    const left = refused(50, 700, { process: 'C' });
    const passed = [before, plain('B', 100, 1_102), plain('C', 600, 1_000)];
    expect(order(history([...passed, left]))).toEqual([]);
    expect(order(history([...passed, { ...left, answered: 590 }]))).toHaveLength(1);
  });

  it('does not judge a caller that takes what a holder has left behind', () => {
    const served = (told: object) => [{ ...before, ...told }, plain('B', 100, 1_102), plain('C', 600, 1_000)];
    expect(order(history(served({})))).toHaveLength(1);
    expect(order(history(served({ deadlines: [{ at: 0, until: 980 }] })))).toEqual([]);
    expect(order(history(served({ lost: 900 })))).toEqual([]);
    expect(order(history(served({ releaseFrom: 700, releaseTo: 701 })))).toEqual([]);
  });

  it('does not judge by the arrival of a caller that did not wait', () => {
    const passed = [before, plain('B', 100, 1_102, { call: 'try' }), plain('C', 600, 1_000)];
    expect(order(history(passed))).toEqual([]);
  });
});
