import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { LockUnavailableError } from '../../../lib/index.js';
import type { StoredLock } from '../../../lib/store/index.js';
import { gather, type Verdict } from '../../../lib/stores/quorum/ballot.js';
import { majorityState } from '../../../lib/stores/quorum/majority-state.js';
import { Quorum } from '../../../lib/stores/quorum/quorum.js';
import { deferred } from '../../doubles/deferred.js';
import { type ScriptedMember, scriptedMembers } from './scripted-member.js';

const PATIENCE = 100;

describe('The answers of the members', () => {
  let members: ScriptedMember[];
  let quorum: Quorum;

  beforeEach(() => {
    jest.useFakeTimers();
    members = scriptedMembers(3);
    quorum = new Quorum(members, 30_000);
  });

  afterEach(() => {
    jest.useRealTimers();
  });

  const pass = (ms: number) => jest.advanceTimersByTimeAsync(ms);
  const failed = (name: string) =>
    new LockUnavailableError('a', { cause: Object.assign(new Error(name), { name }) });
  /** Members that answer when they are told to, and whether the result is there. */
  const asking = (rule?: () => Verdict) => {
    const answers = members.map(() => deferred());
    const state = { isOver: false };
    const gathered = gather(quorum, (_, index) => answers[index]?.promise.then(() => 'an answer'), rule);
    void gathered.then(() => (state.isOver = true));
    const answer = async (...indexes: number[]) => {
      for (const index of indexes) answers[index]?.resolve();
      await pass(0);
      return state.isOver;
    };
    return { answer, gathered, isOver: () => state.isOver };
  };

  it('are those of all; those of a majority get a moment, once', async () => {
    const first = asking();
    expect(await first.answer(0, 1)).toBe(false);
    await pass(PATIENCE - 1);
    expect(first.isOver()).toBe(false);
    await pass(10);
    expect(first.isOver()).toBe(true);
    expect(quorum.present).toEqual([0, 1]);
    const second = asking();
    expect(await second.answer(0, 1)).toBe(true);
    // A late answer is as good as any.
    await first.answer(2);
    expect(quorum.present).toEqual([0, 1, 2]);
    expect(await asking().answer(0, 1)).toBe(false);
  });

  it('are waited for where they are needed', async () => {
    const open = asking();
    expect(await open.answer(0)).toBe(false);
    await pass(10 * PATIENCE);
    expect(open.isOver()).toBe(false);
    expect(await open.answer(1, 2)).toBe(true);
  });

  it('are not waited for once they are decided', async () => {
    expect(await asking(() => 'decided').answer(0)).toBe(true);
  });

  it.each([
    ['CommandTimeout', [0, 2]],
    ['NotConnected', [0, 2]],
    ['TakenBack', [0, 1, 2]],
  ])('show after a %s which members are there', async (name, present) => {
    await gather(quorum, (_, index) => (index === 1 ? Promise.reject(failed(name)) : Promise.resolve()));
    expect(quorum.present).toEqual(present);
    await gather(quorum, () => Promise.reject(failed('ReplyError')));
    expect(quorum.present).toEqual([0, 1, 2]);
  });

  it('are not waited for from a member whose connection is lost', async () => {
    members[2]!.isDown = true;
    expect(await asking().answer(0, 1)).toBe(true);
    members[2]!.isDown = false;
    expect(quorum.present).toEqual([0, 1, 2]);
  });
});

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
