import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { type LockStore, LockUnavailableError } from '../../../lib/index.js';
import { deferred } from '../../doubles/deferred.js';
import { storeOn, type ScriptedMember, scriptedMembers } from './scripted-member.js';

const LEASE = 30_000;
const request = { name: 'a', owner: 'me', leaseTime: LEASE };

describe('A renewal on a quorum', () => {
  let members: ScriptedMember[];
  let last: ScriptedMember;
  let store: LockStore;

  beforeEach(async () => {
    jest.useFakeTimers();
    members = scriptedMembers(3);
    last = members[2]!;
    store = storeOn(members, LEASE);
    // All members have a vote.
    await store.health();
  });

  afterEach(async () => {
    await store.close();
    jest.useRealTimers();
  });

  const pass = (ms: number) => jest.advanceTimersByTimeAsync(ms);
  const failing = (effect: 'refused' | 'unknown') => () =>
    Promise.reject(new LockUnavailableError('a', { effect }));
  const renewed = (leaseTime = LEASE) => store.renew([{ ...request, leaseTime }])[0];
  const isForgotten = async (...forgetful: ScriptedMember[]) => {
    for (const member of forgetful) await member.store.forceRelease('a');
  };
  const heldBy = async ({ store: scripted }: ScriptedMember) => (await scripted.inspect('a'))?.holders[0];

  it('keeps a lock that another process has taken, and gives it to no member that does not hold it', async () => {
    for (const member of members.slice(0, 2)) await member.store.acquire(request);
    expect(await renewed()).toBe('held');
    await pass(0);
    expect(await heldBy(last)).toBeUndefined();
  });

  it('gives a member that does not hold the lock the whole lease, also where it is longer than before', async () => {
    await store.acquire(request);
    await isForgotten(last);
    expect(await renewed(10 * LEASE)).toBe('held');
    await pass(0);
    expect((await heldBy(last))?.remainingTime).toBeGreaterThan(9 * LEASE);
  });

  it('gives a member nothing that answers when the lease is over', async () => {
    await store.acquire(request);
    await isForgotten(last);
    const gate = deferred();
    last.store.onRenew = () => gate.promise;
    expect(await renewed()).toBe('held');
    await pass(LEASE);
    gate.resolve();
    await pass(0);
    expect(last.store.calls.acquire).toBe(1);
  });

  it('gives a member nothing that answers when the lock has been lost', async () => {
    await store.acquire(request);
    await isForgotten(last);
    const gate = deferred();
    last.store.onRenew = () => gate.promise;
    expect(await renewed()).toBe('held');
    last.store.onRenew = () => undefined;
    await isForgotten(...members);
    expect(await renewed()).toBe('deleted');
    gate.resolve();
    await pass(0);
    expect(last.store.calls.acquire).toBe(1);
  });

  it.each([
    ['once, where the member has certainly not been asked for the lock', 'refused', 1],
    ['twice, where it may have been asked', 'unknown', 2],
  ] as const)('is followed by a release that is sent %s', async (_, effect, releases) => {
    await store.acquire(request);
    await isForgotten(last);
    last.store.beforeAcquire = failing(effect);
    expect(await renewed()).toBe('held');
    await pass(0);
    expect(await store.release(request)).toBe('released');
    await pass(0);
    expect(last.store.calls.release).toBe(releases);
  });

  describe('of a lost lock', () => {
    const lose = async (before: number, asked: number) => {
      const reply = await store.acquire({ ...request, leaseTime: before });
      last.store.onRelease = failing('unknown');
      await isForgotten(...members.slice(0, 2));
      expect(await renewed(asked)).toBe('deleted');
      await pass(0);
      return reply.granted ? reply.fencingToken : NaN;
    };
    const isRepeatedAfter = async (ms: number) => {
      await pass(ms);
      const already = last.store.calls.release;
      await pass(ms);
      return last.store.calls.release > already;
    };

    it('lets the members know the token', async () => {
      const token = await lose(LEASE, LEASE);
      for (const { store: scripted } of members) {
        expect(scripted.released).toEqual([{ name: 'a', owner: 'me', fencingToken: token }]);
      }
    });

    it.each([
      ['it was asked for before', 10 * LEASE, LEASE],
      ['it is asked for now', LEASE, 10 * LEASE],
    ])('tells a member to let go for as long as the lease is that %s', async (_, before, asked) => {
      await lose(before, asked);
      expect(await isRepeatedAfter(4 * LEASE)).toBe(true);
      await pass(3 * LEASE);
      expect(await isRepeatedAfter(4 * LEASE)).toBe(false);
    });
  });

  it('of which no majority is certain names the lock', async () => {
    await store.acquire(request);
    for (const { store: scripted } of members.slice(1)) scripted.onRenew = failing('unknown');
    await expect(renewed()).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE', effect: 'unknown', key: 'a' });
  });
});
