import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { LockUnavailableError } from '../../../lib/index.js';
import { gather, type Verdict } from '../../../lib/stores/quorum/ballot.js';
import { Quorum } from '../../../lib/stores/quorum/quorum.js';
import { deferred } from '../../doubles/deferred.js';
import { type ScriptedMember, scriptedMembers } from './scripted-member.js';

const PATIENCE = 250;

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
    const gathered = gather(quorum, (_, index) => answers[index]?.promise, rule);
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
