import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { LockUnavailableError } from '../../../lib/index.js';
import { isTakenBack, isTimeout, Presence } from '../../../lib/stores/quorum/presence.js';
import { deferred } from '../../doubles/deferred.js';
import { type ScriptedMember, scriptedMembers } from './scripted-member.js';

const pass = (ms: number) => jest.advanceTimersByTimeAsync(ms);

/** Says that a member is absent if it has not answered within this time, ms. */
const SOONEST = 40;
const LATEST = 250;

const failed = (name: string) => {
  const cause = Object.assign(new Error(name), { name });
  return new LockUnavailableError('a', { cause });
};

describe('Presence', () => {
  let members: ScriptedMember[];
  let presence: Presence;

  beforeEach(() => {
    jest.useFakeTimers();
    members = scriptedMembers(3);
    presence = new Presence(members);
  });

  afterEach(() => {
    jest.useRealTimers();
  });

  /** An answer that takes so many ms. */
  const answer = async (index: number, ms: number) => {
    const waiting = deferred();
    const seen = presence.observe(index, waiting.promise);
    await pass(ms);
    waiting.resolve();
    await seen;
  };
  const reject = async (index: number, error: Error) => {
    await expect(presence.observe(index, Promise.reject(error))).rejects.toBe(error);
  };
  /** A request that is never answered, and when its member has passed for absent, ms. */
  const absentAfter = async (index: number): Promise<number> => {
    void presence.observe(index, new Promise(() => undefined));
    const asked = performance.now();
    let absent: number | undefined;
    presence.onAbsence(index, () => (absent = performance.now() - asked));
    for (let n = 0; n < 2 * LATEST && absent === undefined; n++) await pass(1);
    return absent ?? Infinity;
  };

  it('takes for the usual time an average in which one answer weighs an eighth', async () => {
    await answer(0, 8);
    await answer(0, 16);
    // 8 + 8 / 8, times 8 round trips.
    const absent = await absentAfter(0);
    expect(absent).toBeGreaterThanOrEqual(72);
    expect(absent).toBeLessThanOrEqual(74);
  });

  it('takes all members for present at first, in the order of the configuration', () => {
    expect(presence.present()).toEqual([0, 1, 2]);
  });

  it('knows a member whose connection is lost', () => {
    members[1]!.isDown = true;
    expect(presence.present()).toEqual([0, 2]);
    members[1]!.isDown = false;
    expect(presence.present()).toEqual([0, 1, 2]);
  });

  it.each(['CommandTimeout', 'NotConnected'])(
    'takes a member for silent after a %s, until it answers',
    async (name) => {
      await reject(1, failed(name));
      expect(presence.present()).toEqual([0, 2]);
      await answer(1, 1);
      expect(presence.present()).toEqual([0, 1, 2]);
    },
  );

  it.each([
    ['an error reply', failed('ReplyError')],
    ['what is no outage', new Error('of another kind')],
  ])('takes %s for an answer', async (_, error) => {
    await reject(1, failed('CommandTimeout'));
    await reject(1, error);
    expect(presence.isAbsent(1)).toBe(false);
  });

  it.each([
    ['the connection was lost with the request', failed('Error')],
    ['the outage has no cause', new LockUnavailableError('a')],
  ])('says nothing about a member where %s', async (_, error) => {
    await reject(1, error);
    expect(presence.isAbsent(1)).toBe(false);
    await reject(1, failed('CommandTimeout'));
    await reject(1, error);
    expect(presence.isAbsent(1)).toBe(true);
  });

  it('gives up on a member that is late by a few of its usual round trips', async () => {
    expect(await absentAfter(0)).toBeCloseTo(SOONEST, -1);
    for (let n = 0; n < 50; n++) await answer(1, 20);
    const late = await absentAfter(1);
    expect(late).toBeGreaterThan(100);
    expect(late).toBeLessThan(200);
    for (let n = 0; n < 50; n++) await answer(2, 2_000);
    expect(await absentAfter(2)).toBeCloseTo(LATEST, -1);
    expect(presence.present()).toEqual([]);
  });

  it('knows the usual round trip of a member from its first answer on', async () => {
    await pass(1_000);
    await answer(1, 20);
    const late = await absentAfter(1);
    expect(late).toBeGreaterThan(100);
    expect(late).toBeLessThan(200);
  });

  it('waits on while the member works its way through older requests', async () => {
    const older = deferred();
    void presence.observe(0, older.promise);
    const absent = absentAfter(0);
    await pass(SOONEST - 10);
    older.resolve();
    const after = await absent;
    expect(after).toBeGreaterThan(2 * SOONEST - 20);
    expect(after).toBeLessThan(2 * LATEST);
  });

  it('does not blame a member for what something else is waited for', async () => {
    const absent = jest.fn();
    const stop = presence.onAbsence(0, absent);
    await pass(10 * LATEST);
    expect(absent).not.toHaveBeenCalled();
    stop();
  });

  it.each<[string, () => Promise<void>]>([
    ['answered', () => answer(0, 5)],
    ['failed', () => reject(0, failed('Error'))],
  ])('does not blame a member that has %s each request', async (_, end) => {
    const absent = jest.fn();
    const older = new Promise(() => undefined);
    await end();
    const stop = presence.onAbsence(0, absent);
    await pass(10 * LATEST);
    expect(absent).not.toHaveBeenCalled();
    expect(presence.isAbsent(0)).toBe(false);
    void presence.observe(0, older);
    await end();
    await pass(10 * LATEST);
    expect(absent).toHaveBeenCalledTimes(1);
    stop();
  });

  it('does not call back, and blames no member, when the wait has ended', async () => {
    const absent = jest.fn();
    void presence.observe(0, new Promise(() => undefined));
    presence.onAbsence(0, absent)();
    expect(jest.getTimerCount()).toBe(0);
    await pass(10 * LATEST);
    expect(absent).not.toHaveBeenCalled();
    expect(presence.isAbsent(0)).toBe(false);
  });

  it('tells by its cause an outage that is a timeout, or was given up', () => {
    const errors = [
      failed('CommandTimeout'),
      failed('TakenBack'),
      failed('Error'),
      new LockUnavailableError('a'),
      new Error('of another kind', { cause: failed('CommandTimeout').cause }),
    ];
    expect(errors.map(isTimeout)).toEqual([true, false, false, false, false]);
    expect(errors.map(isTakenBack)).toEqual([false, true, false, false, false]);
  });

  it('does not call back, and blames no member, when the wait ends just before it would', async () => {
    jest.useRealTimers();
    const absent = jest.fn();
    void presence.observe(0, new Promise(() => undefined));
    setImmediate(presence.onAbsence(0, absent));
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3 * SOONEST);
    await new Promise((resolve) => setTimeout(resolve, 1));
    await new Promise(setImmediate);
    expect(absent).not.toHaveBeenCalled();
    expect(presence.isAbsent(0)).toBe(false);
  });

  it('reads an answer that is already here before it gives up, however busy the process was', async () => {
    jest.useRealTimers();
    const answering = new Promise<string>((resolve) => setImmediate(resolve, 'here'));
    const heard = presence.unlessAbsent(0, presence.observe(0, answering));
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3 * SOONEST);
    expect(await heard).toBe('here');
    expect(presence.isAbsent(0)).toBe(false);
  });

  it('gives an answer, a failure, or nothing', async () => {
    expect(await presence.unlessAbsent(0, Promise.resolve('yes'))).toBe('yes');
    await expect(presence.unlessAbsent(0, Promise.reject(new Error('no')))).rejects.toThrow('no');
    const waiting = presence.unlessAbsent(0, presence.observe(0, new Promise(() => undefined)));
    await pass(2 * SOONEST);
    expect(await waiting).toBeUndefined();
  });
});
