import { describe, expect, it } from '@jest/globals';
import type { StoredLock } from '../../../lib/store/index.js';
import { majorityState } from '../../../lib/stores/quorum/majority-state.js';

const lock = (owner: string, remainingTime = 1_000, more: Partial<StoredLock> = {}): StoredLock => ({
  kind: 'lock',
  holders: [{ owner, mode: 'exclusive', remainingTime, since: remainingTime }],
  queue: [],
  fencingToken: remainingTime,
  listeners: 1,
  ...more,
});

const SILENT = 'silent';
const stateOf = (...answers: (StoredLock | null | typeof SILENT)[]) =>
  majorityState(answers.map((value) => (value === SILENT ? { error: new Error() } : { value })));
const ownerOf = (...answers: Parameters<typeof stateOf>) => stateOf(...answers)?.holders[0]?.owner;

describe('majorityState', () => {
  it('is held by the owner that a majority names', () => {
    expect(ownerOf(lock('a'), lock('a'), lock('a'), null, null)).toBe('a');
    expect(ownerOf(lock('b'), lock('a'), lock('a'), lock('a'), null)).toBe('a');
  });

  it('is not held by an owner that a minority names', () => {
    expect(stateOf(lock('a'), lock('a'), null, null, null)).toBeNull();
    expect(stateOf(lock('a'), lock('a'), lock('b'), lock('b'), null)).toBeNull();
    expect(stateOf(null, null, null, null, null)).toBeNull();
  });

  it('is held where members that have not answered may make it a majority', () => {
    // Of the three that it was taken on, one has died.
    expect(ownerOf(lock('a'), lock('a'), SILENT, null, null)).toBe('a');
    expect(stateOf(lock('a'), SILENT, null, null, null)).toBeNull();
  });

  it('lasts so long as a majority keeps it, in whatever order the nodes answer, or as long as the last that tells', () => {
    const left = (...answers: Parameters<typeof stateOf>) => stateOf(...answers)?.holders[0]?.remainingTime;
    expect(left(lock('a', 20), lock('a', 50), null, lock('a', 30), lock('a', 40))).toBe(30);
    expect(left(lock('a', 50), SILENT, lock('a', 40), null, null)).toBe(40);
  });

  it('has the greatest token, and as many listeners as the node that has most', () => {
    const states = [10, 30, 20].map((token) => lock('a', token, { listeners: token }));
    expect(stateOf(...states)).toMatchObject({ fencingToken: 30, listeners: 30 });
  });
});
