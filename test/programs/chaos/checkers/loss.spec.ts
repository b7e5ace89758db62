import { describe, expect, it } from '@jest/globals';
import { history, hold, lagging } from './histories.js';
import { loss } from './loss.js';

const unreleased = (lost?: number) =>
  hold(0, { releaseFrom: undefined, ...(lost !== undefined && { lost }) });

describe('loss', () => {
  it('has to be announced at the deadline', () => {
    expect(loss(history([unreleased(97)]))).toEqual([]);
    expect(loss(history([unreleased(140)]))).toEqual([]);
    expect(loss(history([unreleased(150)]))).toHaveLength(1);
    expect(loss(history([unreleased()]))).toHaveLength(1);
  });

  it('is no loss when it was released in time', () => {
    expect(loss(history([hold(0)]))).toEqual([]);
    expect(loss(history([hold(0, { releaseFrom: 200 })]))).toHaveLength(1);
  });

  it('counts only the time in which the process ran', () => {
    expect(loss(history([unreleased(3_000)], { processes: lagging('A', 90, 2_990) }))).toEqual([]);
    expect(loss(history([unreleased(3_000)], { processes: lagging('A', 90, 2_900) }))).toHaveLength(1);
  });

  it('cannot be asked of a process that was dead by then', () => {
    const processes = lagging('A', 0, 0);
    processes.get('A')!.lastSeen = 60;
    expect(loss(history([unreleased()], { processes }))).toEqual([]);
  });
});
