import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { type LockStore, LockUnavailableError } from '../../../lib/index.js';
import type { AcquireRequest } from '../../../lib/store/index.js';
import { storeOn, type ScriptedMember, scriptedMembers } from './scripted-member.js';

const LEASE = 30_000;
/** µs */
const MARGIN = (LEASE / 2) * 1_000;
const SECOND = 1_000_000;
const request = { name: 'a', owner: 'me', leaseTime: LEASE };

describe('A forced release on a quorum', () => {
  let members: ScriptedMember[];
  let store: LockStore;

  beforeEach(() => {
    jest.useFakeTimers();
    members = scriptedMembers(5);
    store = storeOn(members, LEASE);
  });

  afterEach(async () => {
    await store.close();
    jest.useRealTimers();
  });

  const pass = (ms: number) => jest.advanceTimersByTimeAsync(ms);
  const unanswered = () => Promise.reject(new LockUnavailableError('a', { cause: new Error('silent') }));
  const released = async () => {
    const releasing = store.forceRelease('a');
    void releasing.catch(() => undefined);
    await pass(500);
    return await releasing;
  };
  const hold = async (indexes: readonly number[], leaseTime = LEASE) => {
    for (const index of indexes) await members[index]!.store.acquire({ ...request, leaseTime });
  };
  const owners = () =>
    Promise.all(members.map(async (member) => (await member.store.inspect('a'))?.holders[0]?.owner));

  /** The lock is held with the greatest of these tokens. @returns what each member is told before the release */
  function tellingOf(...tokens: (number | undefined)[]): AcquireRequest[][] {
    return members.map(({ store: scripted }, index) => {
      const told: AcquireRequest[] = [];
      const inspect = scripted.inspect.bind(scripted);
      scripted.inspect = async (name) => {
        const state = await inspect(name);
        return state && { ...state, fencingToken: tokens[index] };
      };
      scripted.acquire = (telling) => {
        told.push(telling);
        return Promise.resolve({ granted: true, fencingToken: telling.leastToken ?? 0 });
      };
      return told;
    });
  }

  describe('tells the members', () => {
    const nowAsToken = () => Date.now() * 1_000;
    const tokenTold = async (...tokens: (number | undefined)[]) => {
      await hold([0, 1, 2, 3, 4]);
      const telling = tellingOf(...tokens);
      expect(await released()).toBe(true);
      for (const told of telling) expect(told).toMatchObject([{ name: 'a', owner: 'me', leaseTime: 1 }]);
      const asked = new Set(telling.flat().map(({ leastToken }) => leastToken));
      expect(asked.size).toBe(1);
      return [...asked][0] ?? NaN;
    };
    /** The time of the quorum is known from then on. */
    const settled = async () => {
      const looking = store.health();
      await pass(500);
      await looking;
    };

    it('a token beyond the greatest that any of them knows, by the margin and what was handed on', async () => {
      const last = nowAsToken();
      expect(await tokenTold(last - 5, last, undefined, last - 7, last - 9)).toBe(last + MARGIN + SECOND);
    });

    it('no token that is ahead of the clocks by more than the margin', async () => {
      await settled();
      const last = nowAsToken();
      const told = await tokenTold(last, last, last, last, last);
      expect(Math.abs(told - (last + MARGIN))).toBeLessThan(2_000);
      expect(Number.isInteger(told)).toBe(true);
    });

    it('the token beyond the last one where that is further behind the clocks', async () => {
      await settled();
      const last = nowAsToken() - 5 * SECOND;
      expect(await tokenTold(last, last, last, last, last)).toBe(last + MARGIN + SECOND);
    });

    it('a token just beyond one that is far ahead of the clocks', async () => {
      await settled();
      const last = nowAsToken() + 20 * SECOND;
      expect(await tokenTold(last, last, last, last, last)).toBe(last + SECOND / 10);
    });

    it('no token where none is known', async () => {
      await hold([0, 1, 2, 3, 4]);
      const telling = tellingOf();
      expect(await released()).toBe(true);
      expect(telling.flat()).toEqual([]);
      expect(await owners()).toEqual(members.map(() => undefined));
    });
  });

  it('does not wait for a member that is silent when it is told the token', async () => {
    await hold([0, 1, 2, 3, 4]);
    members[4]!.store.beforeAcquire = () => new Promise(() => undefined);
    expect(await released()).toBe(true);
    expect((await owners()).slice(0, 4)).toEqual([undefined, undefined, undefined, undefined]);
  });

  it('is done where one of a bare majority lets the lock go, and not where none does', async () => {
    await hold([0, 1, 2]);
    for (const { store: scripted } of members.slice(0, 2)) scripted.forceRelease = unanswered;
    expect(await released()).toBe(true);
    await hold([0, 1, 2]);
    for (const { store: scripted } of members) {
      scripted.forceRelease = unanswered;
      scripted.onRelease = unanswered;
    }
    await expect(released()).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE', effect: 'unknown', key: 'a' });
  });

  it('has not taken the lock from an owner that has let it go everywhere by then', async () => {
    await hold([0, 1, 2, 3, 4]);
    for (const { store: scripted } of members) scripted.forceRelease = () => Promise.resolve(false);
    expect(await released()).toBe(false);
  });

  describe.each<[string, (member: ScriptedMember) => void]>([
    ['is not told the token', ({ store: scripted }) => (scripted.beforeAcquire = unanswered)],
    ['is told it and does not answer', ({ store: scripted }) => (scripted.forceRelease = unanswered)],
  ])('tells a member that %s', (_, breakAway) => {
    let away: ScriptedMember;

    const repeatedAfter = async (ms: number) => {
      await pass(ms);
      const already = away.store.calls.release;
      await pass(ms);
      return away.store.calls.release > already;
    };

    beforeEach(() => {
      away = members[4]!;
      away.store.onRelease = unanswered;
      breakAway(away);
    });

    it.each([
      ['until the lease has ended', 10 * LEASE],
      ['for a usual lease, where the lease is shorter', LEASE / 5],
    ])('to release the hold of its owner, with the token, %s', async (__, leaseTime) => {
      const before = away.store.beforeAcquire;
      away.store.beforeAcquire = () => undefined;
      await hold([0, 1, 2, 3, 4], leaseTime);
      away.store.beforeAcquire = before;
      const { fencingToken = NaN } = (await members[0]!.store.inspect('a')) ?? {};
      expect(await released()).toBe(true);
      const [first] = away.store.released;
      expect(first).toMatchObject({ name: 'a', owner: 'me' });
      expect(first?.fencingToken).toBeGreaterThan(fencingToken);
      expect(await repeatedAfter(Math.max(leaseTime, LEASE) * 0.4)).toBe(true);
      expect(await repeatedAfter(Math.max(leaseTime, LEASE))).toBe(false);
    });
  });

  it('tells no member to release a hold that has no end', async () => {
    await hold([0, 1, 2, 3, 4]);
    for (const { store: scripted } of members) {
      const inspect = scripted.inspect.bind(scripted);
      scripted.inspect = async (name) => {
        const state = await inspect(name);
        const holders = state?.holders.map((holder) => ({ ...holder, remainingTime: Infinity })) ?? [];
        return state && { ...state, holders };
      };
    }
    members[4]!.store.forceRelease = unanswered;
    expect(await released()).toBe(true);
    expect(members[4]!.store.released).toEqual([]);
  });
});
