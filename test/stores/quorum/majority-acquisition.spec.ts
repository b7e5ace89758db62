import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { LockKindMismatchError, LockUnavailableError } from '../../../lib/index.js';
import type { AcquireAllReply } from '../../../lib/store/lock-store.js';
import { Contention } from '../../../lib/stores/quorum/contention.js';
import type { Charters } from '../../../lib/stores/quorum/charters.js';
import { Holding } from '../../../lib/stores/quorum/holdings.js';
import { MajorityAcquisition } from '../../../lib/stores/quorum/majority-acquisition.js';
import { Presence } from '../../../lib/stores/quorum/presence.js';
import { Quorum } from '../../../lib/stores/quorum/quorum.js';
import { deferred } from '../../doubles/deferred.js';
import { scriptedMembers } from './scripted-member.js';

const LEASE = 10_000;
/** What half a lease is in tokens, which are µs. */
const MARGIN = (LEASE * 1_000) / 2;
const NOW = 1_700_000_000_000_000;

type Answer = AcquireAllReply | Error | Promise<AcquireAllReply>;

const grant = (...fencingTokens: number[]): AcquireAllReply => ({ granted: true, fencingTokens });
const refusal = (holder: string | undefined, retryAfter = 1_000, name = 'a'): AcquireAllReply => {
  return { granted: false, name, holder, retryAfter };
};
const failure = (name: string, effect: 'refused' | 'unknown' = 'unknown') => {
  const cause = Object.assign(new Error('for the test'), { name });
  return new LockUnavailableError('a', { cause, effect });
};
const never = () => new Promise<AcquireAllReply>(() => undefined);

let contention: Contention;
let heard: string[];
/** What a member was asked: its index, and the least token. */
let asked: [index: number, least: number | undefined][];
let givenUp: [index: number, insist: boolean][];

beforeEach(() => {
  contention = new Contention();
  [heard, asked, givenUp] = [[], [], []];
  for (const method of ['decided', 'expect', 'refusedByOne'] as const) {
    const original = contention[method].bind(contention) as (...given: unknown[]) => never;
    jest.spyOn(contention, method).mockImplementation((...given: unknown[]) => {
      heard.push(`${method} ${given.map((each) => String(each)).join(' ')}`);
      return original(...given);
    });
  }
});

afterEach(() => {
  jest.useRealTimers();
});

interface Setting {
  names?: string[];
  leaseTime?: number;
  /** Of the members, in the order of their indexes. */
  quarantined?: readonly number[];
  /** Those whose vote is looked up, and what is found. */
  lookedUp?: ReadonlyMap<number, Promise<boolean>>;
  time?: number;
}

/** An attempt at members that answer as told, the first time, and after that as told by `again`. */
function attemptAt(answers: readonly (Answer | (() => Answer))[], setting: Setting = {}) {
  const { names = ['a'], leaseTime = LEASE, quarantined = [], lookedUp, time = NOW } = setting;
  const members = scriptedMembers(answers.length);
  const presence = new Presence(members);
  const holding = new Holding(leaseTime);
  const again = new Map<number, Answer>();
  const charters = {
    allowed: leaseTime,
    time,
    quarantineOf: (index: number) => (quarantined.includes(index) || lookedUp?.has(index) ? 1 : 0),
    mayVote: (index: number) => lookedUp?.get(index) ?? false,
    refusalOf: () => undefined,
  } as unknown as Charters;
  const quorum = Object.assign(new Quorum(members, LEASE), { charters, presence, contention });
  const attempt = new MajorityAcquisition<AcquireAllReply>(
    quorum,
    { names, owner: 'me:1', leaseTime },
    holding,
    async (store, leastToken) => {
      const index = members.findIndex((member) => member.store === store);
      const isFirst = !asked.some(([before]) => before === index);
      asked.push([index, leastToken]);
      const told = isFirst ? answers[index] : again.get(index);
      const answer = await (typeof told === 'function' ? told() : told);
      if (answer instanceof Error) throw answer;
      if (answer === undefined) throw new Error('not told');
      return answer;
    },
    (reply) => reply,
    (index, insist) => givenUp.push([index, insist]),
  );
  return { members, presence, holding, again, run: () => attempt.run() };
}

const turn = () => new Promise(setImmediate);

describe('A majority', () => {
  it('grants, with the greatest of its tokens for each name, and nothing is given up', async () => {
    const { run } = attemptAt([grant(NOW, NOW + 5), grant(NOW + 3, NOW), never()], { names: ['a', 'b'] });
    expect(await run()).toEqual({ granted: true, fencingTokens: [NOW + 3, NOW + 5] });
    expect([asked.map(([index]) => index), givenUp, heard]).toEqual([[0, 1, 2], [], ['decided a,b true']]);
  });

  it('refuses, with the holder that it names and the moment in which enough of its holds end', async () => {
    const { run, holding } = attemptAt([
      refusal('x:1', 500),
      refusal('x:1', 100),
      refusal('x:1', 300),
      never(),
      never(),
    ]);
    const reply = { granted: false, name: 'a', holder: 'x:1', retryAfter: 500, undecided: false };
    expect(await run()).toEqual(reply);
    expect(heard).toEqual(['decided a false']);
    // Those that have refused hold nothing.
    expect(givenUp).toEqual([
      [3, false],
      [4, false],
    ]);
    expect(holding.mayBeHeldBy(0)).toBe(false);
  });

  it('refuses sooner where one of its members has granted: one hold fewer has to end', async () => {
    const { run } = attemptAt([grant(NOW), refusal('x:1', 500), refusal('x:1', 100)]);
    expect(await run()).toMatchObject({ holder: 'x:1', retryAfter: 100, undecided: false });
    expect(givenUp).toEqual([[0, false]]);
  });

  it('counts what may still be on its way for the holder that most of it name', async () => {
    const { run } = attemptAt([
      refusal('x:1', 500),
      refusal('x:1', 700),
      refusal('s:1', 100),
      never(),
      never(),
    ]);
    expect(await run()).toMatchObject({ holder: 'x:1', retryAfter: 700, undecided: true });
    expect(heard).toEqual(['decided a false']);
  });

  it('counts nothing for the holder that a member which is absent may know', async () => {
    const { run, presence } = attemptAt([refusal('x:1', 700), grant(NOW), failure('CommandTimeout')]);
    expect(await run()).toMatchObject({ holder: 'x:1', retryAfter: 500, undecided: true });
    expect(presence.isAbsent(2)).toBe(true);
    expect(heard).toEqual(['expect a']);
  });

  it('names no holder where its members name different ones, and asks again after half a second', async () => {
    const { run } = attemptAt([grant(NOW), refusal('x:1', 9_000), refusal('y:1', 8_000)]);
    expect(await run()).toMatchObject({ retryAfter: 500, undecided: true });
    expect(heard).toEqual(['expect a']);
    expect(givenUp).toEqual([[0, false]]);
  });

  it('asks sooner where a hold of the split vote ends sooner', async () => {
    const { run } = attemptAt([grant(NOW), refusal('x:1', 90), refusal('y:1', 8_000)]);
    expect(await run()).toMatchObject({ retryAfter: 90, undecided: true });
  });

  it('names the lock that most of it names, after the other answers where the first ones differ', async () => {
    const late = deferred();
    const { run } = attemptAt([
      refusal('x:1', 100, 'a'),
      refusal('y:1', 200, 'b'),
      late.promise.then(() => refusal('y:1', 300, 'b')),
    ]);
    const running = run();
    await turn();
    late.resolve();
    expect(await running).toEqual({
      granted: false,
      ...{ name: 'b', holder: 'y:1', retryAfter: 200, undecided: false },
    });
  });

  it('does not wait for the other answers for longer than a moment', async () => {
    const { run } = attemptAt([refusal('x:1', 100, 'a'), refusal('y:1', 200, 'b'), never()]);
    expect(await run()).toMatchObject({ name: 'a', holder: 'x:1', undecided: true });
  });

  it('does not wait for that of a member that is absent', async () => {
    jest.useFakeTimers();
    const { run, presence } = attemptAt([refusal('x:1', 100, 'a'), refusal('y:1', 200, 'b'), never()]);
    presence.failed(2, presence.asked(2), failure('CommandTimeout'));
    let isOver = false;
    const running = run().then(() => (isOver = true));
    // The moment is twice as long.
    await jest.advanceTimersByTimeAsync(25);
    expect(isOver).toBe(true);
    await running;
  });
});

describe('Too few answers', () => {
  it('are an error that says what each member has done, and all that may be held is given up', async () => {
    const { run, members } = attemptAt([grant(NOW), failure('ReplyError'), failure('CommandTimeout')]);
    await expect(run()).rejects.toMatchObject({
      ...{ code: 'LOCK_UNAVAILABLE', effect: 'refused', key: 'a' },
      outcomes: [
        { node: members[0]?.node, outcome: 'granted' },
        { node: members[1]?.node, outcome: 'error' },
        { node: members[2]?.node, outcome: 'timeout' },
      ],
    });
    expect(givenUp.filter(([, insist]) => !insist).map(([index]) => index)).toEqual([0, 1, 2]);
    await turn();
    // What has no answer may arrive behind the release.
    expect(givenUp.filter(([, insist]) => insist).map(([index]) => index)).toEqual([1, 2]);
  });

  it('count a request that was taken back as late, and one that was refused as no hold', async () => {
    const { run } = attemptAt([
      grant(NOW),
      failure('TakenBack', 'refused'),
      failure('ReplyError', 'refused'),
    ]);
    await expect(run()).rejects.toMatchObject({
      outcomes: [{ outcome: 'granted' }, { outcome: 'timeout' }, { outcome: 'error' }],
    });
    await turn();
    expect(givenUp).toEqual([[0, false]]);
  });

  it('are told as something else under the name where a member has found that', async () => {
    const mismatch = new LockKindMismatchError('a', { expected: 'plain lock', found: 'string' });
    const { run } = attemptAt([failure('ReplyError'), mismatch, grant(NOW)]);
    await expect(run()).rejects.toBe(mismatch);
  });

  it('insist on the release of a member as long as its answer is out', async () => {
    const late = deferred();
    const { run } = attemptAt([
      failure('ReplyError', 'refused'),
      failure('ReplyError', 'refused'),
      late.promise.then(() => grant(NOW)),
    ]);
    await expect(run()).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    expect(givenUp).toEqual([[2, false]]);
    late.resolve();
    await turn();
    // Its answer has come, and the release that was sent behind the request frees it.
    expect(givenUp).toEqual([[2, false]]);
  });
});

describe('A vote', () => {
  it('does not count while its member is in quarantine, or is found to be', async () => {
    const lookedUp = new Map([[2, Promise.resolve(false)]]);
    const { run } = attemptAt([grant(NOW), grant(NOW), grant(NOW)], { quarantined: [1], lookedUp });
    await expect(run()).rejects.toMatchObject({
      outcomes: [{ outcome: 'granted' }, { outcome: 'quarantined' }, { outcome: 'quarantined' }],
    });
  });

  it('counts where its member is found to be out of quarantine', async () => {
    const lookedUp = new Map([[1, Promise.resolve(true)]]);
    const { run } = attemptAt([grant(NOW), grant(NOW + 1), never()], { lookedUp });
    expect(await run()).toEqual({ granted: true, fencingTokens: [NOW + 1] });
  });

  it('does not count where that cannot be found out', async () => {
    const lookedUp = new Map([[1, Promise.reject(failure('CommandTimeout'))]]);
    lookedUp.get(1)?.catch(() => undefined);
    const { run } = attemptAt([grant(NOW), grant(NOW), failure('ReplyError')], { lookedUp });
    await expect(run()).rejects.toMatchObject({
      outcomes: [{ outcome: 'granted' }, { outcome: 'timeout' }, { outcome: 'error' }],
    });
  });

  it('does not count where the connection was another one when it was asked for', async () => {
    const answer = deferred();
    const { run, members } = attemptAt([
      grant(NOW),
      answer.promise.then(() => grant(NOW)),
      failure('ReplyError'),
    ]);
    const running = run();
    await turn();
    members[1]?.reconnect();
    answer.resolve();
    await expect(running).rejects.toMatchObject({
      outcomes: [{ outcome: 'granted' }, { outcome: 'quarantined' }, { outcome: 'error' }],
    });
  });

  it('is not asked for at a member that is down, unless too few others are there', async () => {
    const one = attemptAt([grant(NOW), grant(NOW), never()]);
    if (one.members[2] !== undefined) one.members[2].isDown = true;
    expect(await one.run()).toMatchObject({ granted: true });
    expect(asked.map(([index]) => index)).toEqual([0, 1]);
    asked = [];
    const two = attemptAt([grant(NOW), grant(NOW), grant(NOW)]);
    for (const member of two.members.slice(1)) member.isDown = true;
    expect(await two.run()).toMatchObject({ granted: true });
    expect(asked.map(([index]) => index)).toEqual([0, 1, 2]);
  });

  it('of a member that is down is an error, which says why', async () => {
    const { run, members } = attemptAt([grant(NOW), failure('ReplyError', 'refused'), never()]);
    if (members[2] !== undefined) members[2].isDown = true;
    await expect(run()).rejects.toMatchObject({
      outcomes: [
        { outcome: 'granted' },
        { outcome: 'error' },
        { outcome: 'error', error: { cause: { message: 'out of reach' } } },
      ],
    });
  });

  it('is not asked for where the lock has been given up meanwhile', async () => {
    const { run, holding } = attemptAt([grant(NOW), grant(NOW), grant(NOW)]);
    holding.released.add('a');
    await expect(run()).rejects.toMatchObject({
      outcomes: [{ outcome: 'error', error: { cause: { message: 'given up' }, effect: 'refused' } }, {}, {}],
    });
    expect([asked, givenUp]).toEqual([[], []]);
  });

  it('leaves a member that held something before as one that may hold, also where it refuses', async () => {
    const { run, holding } = attemptAt([refusal('x:1'), failure('ReplyError', 'refused'), refusal('x:1')]);
    for (const index of [0, 1]) {
      holding.ask(index);
      holding.answered(index);
    }
    expect(await run()).toMatchObject({ granted: false });
    await turn();
    expect(givenUp).toEqual([
      [0, false],
      [1, false],
    ]);
    expect([0, 1, 2].map((index) => holding.isUnsureOf(index))).toEqual([false, false, false]);
  });
});

describe('The tokens of a majority', () => {
  it('are told to a member whose clock is further behind than half of the lease', async () => {
    const { run, again } = attemptAt([grant(NOW), grant(NOW - MARGIN - 1), never()]);
    again.set(1, grant(NOW));
    expect(await run()).toEqual({ granted: true, fencingTokens: [NOW] });
    expect(asked).toEqual([
      [0, undefined],
      [1, undefined],
      [2, undefined],
      [1, NOW],
    ]);
    expect(heard).toEqual(['decided a true']);
  });

  it('are told to no member that is behind by less', async () => {
    const { run } = attemptAt([grant(NOW), grant(NOW - MARGIN), never()]);
    expect(await run()).toEqual({ granted: true, fencingTokens: [NOW] });
    expect(asked).toHaveLength(3);
  });

  it('may be as far apart as half of the lease of the module where the lease is longer', async () => {
    const { run, again } = attemptAt([grant(NOW), grant(NOW - MARGIN - 1), never()], {
      leaseTime: 4 * LEASE,
    });
    again.set(1, grant(NOW));
    expect(await run()).toMatchObject({ granted: true });
    expect(asked).toHaveLength(4);
  });

  it('are told to all that have less, where they are ahead of the clocks', async () => {
    const ahead = NOW + MARGIN + 1;
    const { run, again } = attemptAt([grant(ahead), grant(ahead - 1), never()]);
    again.set(1, grant(ahead));
    expect(await run()).toEqual({ granted: true, fencingTokens: [ahead] });
    expect(asked[3]).toEqual([1, ahead]);
  });

  it('are as good as any up to that', async () => {
    const { run } = attemptAt([grant(NOW + MARGIN), grant(NOW + MARGIN - 1), never()]);
    expect(await run()).toEqual({ granted: true, fencingTokens: [NOW + MARGIN] });
    expect(asked).toHaveLength(3);
  });

  it('for several names are told at once, as the greatest of them', async () => {
    const { run, again } = attemptAt(
      [grant(NOW, NOW + 7), grant(NOW, NOW - MARGIN), grant(NOW + 1, NOW + 2), never(), never()],
      { names: ['a', 'b'] },
    );
    again.set(1, grant(NOW, NOW + 7));
    expect(await run()).toEqual({ granted: true, fencingTokens: [NOW + 1, NOW + 7] });
    expect(asked.slice(5)).toEqual([[1, NOW + 7]]);
  });

  it('are none where too few could be told, and all is given up', async () => {
    const { run, again } = attemptAt([grant(NOW), grant(NOW - MARGIN - 1), failure('ReplyError', 'refused')]);
    again.set(1, failure('ReplyError'));
    await expect(run()).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    expect(heard).toEqual([]);
    expect(givenUp.slice(0, 2)).toEqual([
      [0, false],
      [1, false],
    ]);
  });

  it('are not told to a member that refuses them', async () => {
    const { run, again } = attemptAt([grant(NOW), grant(NOW - MARGIN - 1), failure('ReplyError', 'refused')]);
    again.set(1, refusal('x:1'));
    await expect(run()).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
  });

  it('need not be told to a member that is not needed', async () => {
    const { run, again } = attemptAt([
      grant(NOW),
      grant(NOW + 1),
      grant(NOW - 2 * MARGIN),
      grant(NOW - 2 * MARGIN),
      never(),
    ]);
    again.set(2, grant(NOW)).set(3, failure('ReplyError'));
    expect(await run()).toMatchObject({ granted: true });
  });

  it('are not told where the lock has been given up meanwhile', async () => {
    const answer = deferred();
    const { run, holding } = attemptAt([
      grant(NOW),
      answer.promise.then(() => grant(NOW - 2 * MARGIN)),
      never(),
    ]);
    const running = run();
    await turn();
    holding.released.add('a');
    answer.resolve();
    expect(await running).toMatchObject({ granted: true });
    expect(asked).toHaveLength(3);
  });
});

describe('Where several processes ask', () => {
  beforeEach(() => {
    contention.expect(['a']);
    heard = [];
  });

  it('one member is asked first, and its refusal is the answer, for a moment', async () => {
    const { run } = attemptAt([refusal('x:1', 5_000), never(), never()]);
    expect(await run()).toEqual({
      granted: false,
      ...{ name: 'a', holder: 'x:1', retryAfter: 100, undecided: true },
    });
    expect([asked, givenUp]).toEqual([[[0, undefined]], []]);
    expect(heard).toEqual(['refusedByOne a']);
  });

  it('the others are asked once it has granted, and it is not asked again', async () => {
    const { run } = attemptAt([grant(NOW), grant(NOW), never()]);
    expect(await run()).toMatchObject({ granted: true });
    expect(asked.map(([index]) => index)).toEqual([0, 1, 2]);
  });

  it('the next member is asked where the first is down or fails', async () => {
    const { run, members } = attemptAt([
      never(),
      failure('ReplyError', 'refused'),
      refusal('x:1'),
      never(),
      never(),
    ]);
    if (members[0] !== undefined) members[0].isDown = true;
    expect(await run()).toMatchObject({ holder: 'x:1' });
    expect(asked.map(([index]) => index)).toEqual([1, 2]);
  });

  it('the next member is asked where the first falls silent', async () => {
    const { run } = attemptAt([never(), refusal('x:1'), never()]);
    expect(await run()).toMatchObject({ holder: 'x:1' });
    expect(asked.map(([index]) => index)).toEqual([0, 1]);
    expect(givenUp).toEqual([[0, false]]);
  });

  it('no member is asked first where no majority is there', async () => {
    const { run, members } = attemptAt([refusal('x:1'), never(), never()]);
    for (const member of members.slice(1)) member.isDown = true;
    void run();
    await turn();
    expect(asked.map(([index]) => index)).toEqual([0, 1, 2]);
  });

  it('no further member is asked where the lock has been given up meanwhile', async () => {
    const first = deferred();
    const { run, holding } = attemptAt([
      first.promise.then(() => Promise.reject(failure('ReplyError', 'refused'))),
      refusal('x:1'),
      never(),
    ]);
    const running = run();
    await turn();
    holding.released.add('a');
    first.resolve();
    await expect(running).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    expect(asked.map(([index]) => index)).toEqual([0]);
  });

  it('the last winner leaves the others a head start', async () => {
    jest.useFakeTimers();
    contention = new Contention();
    contention.expect(['a']);
    contention.decided(['a'], true);
    const { run } = attemptAt([refusal('x:1'), never(), never()]);
    const running = run();
    await jest.advanceTimersByTimeAsync(4);
    expect(asked).toEqual([]);
    await jest.advanceTimersByTimeAsync(1);
    await running;
    expect(asked).toHaveLength(1);
  });
});
