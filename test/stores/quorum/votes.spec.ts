import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { LockKindMismatchError, LockUnavailableError } from '../../../lib/index.js';
import type { AcquireAllReply, AcquireReply } from '../../../lib/store/index.js';
import { deferred } from '../../doubles/deferred.js';
import { storeOn, type StoreOnMembers, type ScriptedMember, scriptedMembers } from './scripted-member.js';

const LEASE = 10_000;
/** Half a lease in tokens, which are µs. */
const MARGIN = (LEASE * 1_000) / 2;
/** ms after which a member that has not answered is not waited for. */
const PATIENCE = 100;

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
const pass = (ms: number) => jest.advanceTimersByTimeAsync(ms);

interface Setting {
  readonly names?: readonly string[];
  readonly leaseTime?: number;
  /** Answers to a second request, by member. */
  readonly again?: Readonly<Record<number, Answer>>;
}

describe('The votes of a quorum', () => {
  let members: ScriptedMember[];
  let store: StoreOnMembers;
  /** The time of the members' clocks as a token. */
  let NOW: number;
  /** What a member was asked: its index, and the least token. */
  let asked: [index: number, least: number | undefined][];
  /** The members that were told to release. */
  let released: number[];

  beforeEach(() => {
    jest.useFakeTimers();
    // When the quorum has been founded.
    NOW = (Date.now() + PATIENCE) * 1_000;
    [asked, released] = [[], []];
  });

  afterEach(async () => {
    await store.close();
    jest.useRealTimers();
  });

  const single = (reply: AcquireAllReply): AcquireReply =>
    reply.granted ? { granted: true, fencingToken: reply.fencingTokens[0] ?? 0 } : reply;

  /** A quorum of members that answer acquisitions as told. All members have a vote. */
  async function quorumOf(...answers: Answer[]): Promise<void> {
    members = scriptedMembers(answers.length);
    store = storeOn(members, LEASE);
    const settling = store.health().then(() => store.leaseLimit.raise('a', 4 * LEASE));
    await pass(PATIENCE);
    await settling;
  }

  async function attempt(answers: readonly Answer[], setting: Setting = {}): Promise<AcquireAllReply> {
    const { names = ['a'], leaseTime = LEASE, again = {} } = setting;
    for (const [index, { store: scripted }] of members.entries()) {
      const answerTo = async (least: number | undefined) => {
        const isFirst = asked.every(([other]) => other !== index);
        asked.push([index, least]);
        const answer = await (isFirst ? answers[index] : again[index]);
        if (answer === undefined || answer instanceof Error) throw answer ?? new Error('not told');
        return answer;
      };
      scripted.acquire = async ({ leastToken }) => single(await answerTo(leastToken));
      scripted.acquireAll = ({ leastToken }) => answerTo(leastToken);
      scripted.release = () => {
        released.push(index);
        return Promise.resolve('released');
      };
    }
    const request = { names, owner: 'me:1', leaseTime };
    return await store.acquireAll(request);
  }

  const run = async (answers: readonly Answer[], setting?: Setting) => {
    await quorumOf(...answers);
    const running = attempt(answers, setting);
    void running.catch(() => undefined);
    await pass(2 * PATIENCE);
    return await running;
  };

  describe('of a majority', () => {
    it('grant, with the greatest of its tokens for each name, and nothing is given up', async () => {
      const reply = await run([grant(NOW, NOW + 5), grant(NOW + 3, NOW), never()], { names: ['a', 'b'] });
      expect(reply).toEqual({ granted: true, fencingTokens: [NOW + 3, NOW + 5] });
      expect([asked.map(([index]) => index), released]).toEqual([[0, 1, 2], []]);
    });

    it('refuse, with the holder that it names and the moment in which enough of its holds end', async () => {
      const refusals = [refusal('x:1', 500), refusal('x:1', 100), refusal('x:1', 300)];
      expect(await run([...refusals, never(), never()])).toEqual({
        ...{ granted: false, name: 'a', holder: 'x:1', retryAfter: 500, undecided: false },
      });
      // Those that have refused hold nothing.
      expect(released).toEqual([3, 4]);
    });

    it('refuse sooner where one of its members has granted: one hold fewer has to end', async () => {
      const reply = await run([grant(NOW), refusal('x:1', 500), refusal('x:1', 100)]);
      expect(reply).toMatchObject({ holder: 'x:1', retryAfter: 100, undecided: false });
      expect(released).toEqual([0]);
    });

    it('name no holder where its members name different ones, so the caller asks again after half a second', async () => {
      const reply = await run([grant(NOW), refusal('x:1', 9_000), refusal('y:1', 8_000)]);
      expect(reply).toMatchObject({ retryAfter: 500, undecided: true });
      expect(released).toEqual([0]);
    });

    it('name the lock that most of it names, after the other answers where the first ones differ', async () => {
      const late = deferred();
      const third = late.promise.then(() => refusal('y:1', 300, 'b'));
      await quorumOf(never(), never(), never());
      const running = attempt([refusal('x:1', 100, 'a'), refusal('y:1', 200, 'b'), third], {
        names: ['a', 'b'],
      });
      await pass(PATIENCE - 1);
      late.resolve();
      expect(await running).toMatchObject({ name: 'b', holder: 'y:1', retryAfter: 200, undecided: false });
    });
  });

  describe('that are too few', () => {
    it('are an error that says what each member has done, and all that may be held is given up', async () => {
      await expect(run([grant(NOW), failure('ReplyError'), failure('CommandTimeout')])).rejects.toMatchObject(
        {
          ...{ code: 'LOCK_UNAVAILABLE', effect: 'refused', key: 'a' },
          outcomes: [
            { node: 'node-0', outcome: 'granted' },
            { node: 'node-1', outcome: 'error' },
            { node: 'node-2', outcome: 'timeout' },
          ],
        },
      );
      released = [];
      await pass(1_000);
      // A request without an answer may arrive behind the release.
      expect([...new Set(released)]).toEqual([1, 2]);
    });

    it('count a request that was taken back as late, and one that was refused as no hold', async () => {
      const answers = [grant(NOW), failure('TakenBack', 'refused'), failure('ReplyError', 'refused')];
      await expect(run(answers)).rejects.toMatchObject({
        outcomes: [{ outcome: 'granted' }, { outcome: 'timeout' }, { outcome: 'error' }],
      });
      expect(released).toEqual([0]);
    });

    it('are told as something else under the name where a member has found that', async () => {
      const mismatch = new LockKindMismatchError('a', { expected: 'plain lock', found: 'string' });
      await expect(run([failure('ReplyError'), mismatch, grant(NOW)])).rejects.toBe(mismatch);
    });

    it('need one release of a member whose answer comes later', async () => {
      const late = deferred();
      const refused = failure('ReplyError', 'refused');
      const third = late.promise.then(() => grant(NOW));
      await expect(run([refused, refused, third])).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
      late.resolve();
      await pass(1_000);
      expect(released).toEqual([2]);
    });
  });

  describe('count', () => {
    const refused = () => failure('ReplyError', 'refused');

    it('from no member in quarantine', async () => {
      await quorumOf(never(), never(), never());
      members[1]?.restart();
      members[2]?.restart();
      const running = attempt([grant(NOW), grant(NOW), grant(NOW)]);
      void running.catch(() => undefined);
      await pass(PATIENCE);
      await expect(running).rejects.toMatchObject({
        outcomes: [{ outcome: 'granted' }, { outcome: 'quarantined' }, { outcome: 'quarantined' }],
      });
    });

    it('from a member that has kept its run over a lost connection', async () => {
      await quorumOf(never(), never(), never());
      members[1]?.reconnect();
      expect(await attempt([grant(NOW), grant(NOW + 1), never()])).toEqual(grant(NOW + 1));
    });

    it('from members whose connections had to be made again for the request', async () => {
      await quorumOf(never(), never(), never());
      const connected = deferred();
      for (const member of members) {
        member.reconnect();
        member.isDown = true;
      }
      const connect = async (member: ScriptedMember | undefined) => {
        await connected.promise;
        member!.isDown = false;
        return grant(NOW);
      };
      const running = attempt(members.map((member) => connect(member)));
      await pass(0);
      connected.resolve();
      expect(await running).toEqual(grant(NOW));
    });

    it('from no member whose charter cannot be read', async () => {
      await quorumOf(never(), never(), never());
      members[1]?.reconnect();
      members[1]!.charter = () => Promise.reject(failure('CommandTimeout'));
      const running = attempt([grant(NOW), grant(NOW), refused()]);
      void running.catch(() => undefined);
      await pass(PATIENCE);
      await expect(running).rejects.toMatchObject({
        outcomes: [{ outcome: 'granted' }, { outcome: 'quarantined' }, { outcome: 'error' }],
      });
    });

    it('over the connection on which they were asked for, and no other', async () => {
      const answer = deferred();
      await quorumOf(never(), never(), never());
      const second = answer.promise.then(() => grant(NOW));
      const running = attempt([grant(NOW), second, refused()]);
      await pass(0);
      members[1]?.reconnect();
      answer.resolve();
      await expect(running).rejects.toMatchObject({
        outcomes: [{ outcome: 'granted' }, { outcome: 'quarantined' }, { outcome: 'error' }],
      });
    });

    it('from members that are not down, unless too few others are left', async () => {
      await quorumOf(never(), never(), never());
      members[2]!.isDown = true;
      expect(await attempt([grant(NOW), grant(NOW), never()])).toMatchObject({ granted: true });
      expect(asked.map(([index]) => index)).toEqual([0, 1]);
      asked = [];
      members[1]!.isDown = true;
      expect(await attempt([grant(NOW), grant(NOW), grant(NOW)])).toMatchObject({ granted: true });
      expect(asked.map(([index]) => index)).toEqual([0, 1, 2]);
    });
  });

  describe('have tokens, which', () => {
    const tell = async (answers: Answer[], again: Setting['again'] = {}, leaseTime = LEASE) =>
      await run(answers, { again, leaseTime });

    it('are told to a member whose clock is further behind than half of the lease', async () => {
      expect(await tell([grant(NOW), grant(NOW - MARGIN - 1), never()], { 1: grant(NOW) })).toEqual(
        grant(NOW),
      );
      expect(asked).toEqual([
        [0, undefined],
        [1, undefined],
        [2, undefined],
        [1, NOW],
      ]);
    });

    it('are told to no member that is behind by less', async () => {
      expect(await tell([grant(NOW), grant(NOW - MARGIN), never()])).toEqual(grant(NOW));
      expect(asked).toHaveLength(3);
    });

    it('may be as far apart as half of the lease of the module where the lease is longer', async () => {
      const answers = [grant(NOW), grant(NOW - MARGIN - 1), never()];
      expect(await tell(answers, { 1: grant(NOW) }, 4 * LEASE)).toEqual(grant(NOW));
      expect(asked).toHaveLength(4);
    });

    it('are told to all that have less, where they are ahead of the clocks', async () => {
      const ahead = NOW + MARGIN + 1;
      expect(await tell([grant(ahead), grant(ahead - 1), never()], { 1: grant(ahead) })).toEqual(
        grant(ahead),
      );
      expect(asked[3]).toEqual([1, ahead]);
    });

    it('are as good as any up to that', async () => {
      const answers = [grant(NOW + MARGIN), grant(NOW + MARGIN - 1), never()];
      expect(await tell(answers)).toEqual(grant(NOW + MARGIN));
      expect(asked).toHaveLength(3);
    });

    it('for several names are told at once, as the greatest of them', async () => {
      const tokens = [grant(NOW, NOW + 7), grant(NOW, NOW - MARGIN), grant(NOW + 1, NOW + 2)];
      const setting = { names: ['a', 'b'], again: { 1: grant(NOW, NOW + 7) } };
      expect(await run([...tokens, never(), never()], setting)).toEqual(grant(NOW + 1, NOW + 7));
      expect(asked.slice(5)).toEqual([[1, NOW + 7]]);
    });

    it.each<[string, Answer, object]>([
      ['does not answer', failure('ReplyError'), { code: 'LOCK_UNAVAILABLE' }],
      ['refuses them', refusal('x:1'), { granted: false, holder: 'x:1', undecided: true }],
    ])('are none where one of the last two members %s, and all is given up', async (_, answer, outcome) => {
      const answers = [grant(NOW), grant(NOW - MARGIN - 1), failure('ReplyError', 'refused')];
      const told = await tell(answers, { 1: answer }).catch((error: unknown) => error);
      expect(told).toMatchObject(outcome);
      expect([...new Set(released)].sort()).toEqual([0, 1]);
    });

    it('do not count the late grant of a member that is behind until it has learned them', async () => {
      const behind = grant(NOW - MARGIN - 1);
      const after = <T>(ms: number, answer: T) =>
        new Promise<T>((resolve) =>
          setTimeout(() => {
            resolve(answer);
          }, PATIENCE + ms),
        );
      const again = { 1: after(20, refusal('x:1')), 2: grant(NOW) };
      expect(await tell([grant(NOW), behind, after(10, behind)], again)).toEqual(grant(NOW));
      expect(asked.slice(3)).toEqual([
        [1, NOW],
        [2, NOW],
      ]);
    });

    it('need not be told to a member that is not needed', async () => {
      const behind = grant(NOW - 2 * MARGIN);
      const again = { 2: grant(NOW + 1), 3: failure('ReplyError') };
      const reply = await tell([grant(NOW), grant(NOW + 1), behind, behind, never()], again);
      expect(reply).toEqual(grant(NOW + 1));
    });
  });
});
