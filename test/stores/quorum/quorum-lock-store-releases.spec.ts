import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { type LockStore, LockUnavailableError } from '../../../lib/index.js';
import type { ConnectionChange } from '../../../lib/store/store-health.js';
import { type ScriptedMember, scriptedMembers, storeOn } from './scripted-member.js';

const LEASE = 30_000;

const request = { name: 'a', owner: 'me', leaseTime: LEASE };

describe('A release that one member does not answer', () => {
  let members: ScriptedMember[];
  let away: ScriptedMember;
  let store: LockStore;

  beforeEach(() => {
    jest.useFakeTimers();
    members = scriptedMembers(3);
    away = members[2]!;
    store = storeOn(members, LEASE);
    away.store.onRelease = () => Promise.reject(new LockUnavailableError('a', { effect: 'unknown' }));
  });

  afterEach(async () => {
    await store.close();
    jest.useRealTimers();
  });

  const pass = (ms: number) => jest.advanceTimersByTimeAsync(ms);
  const attempts = () => away.store.calls.release;

  /** Whether the release is still repeated so many ms later. */
  const isRepeatedAfter = async (ms: number) => {
    await pass(ms);
    const already = attempts();
    await pass(ms);
    return attempts() > already;
  };

  it('is repeated until the lease has ended, also one that is longer than the usual one', async () => {
    const leaseTime = 10 * LEASE;
    await store.acquire({ ...request, leaseTime });
    expect(await store.release(request)).toBe('released');
    expect(await isRepeatedAfter(4 * LEASE)).toBe(true);
    await pass(3 * LEASE);
    expect(await isRepeatedAfter(4 * LEASE)).toBe(false);
  });

  it('is repeated for a usual lease where the lease is shorter, or not known', async () => {
    await store.acquire({ ...request, leaseTime: 1_000 });
    expect(await store.release(request)).toBe('released');
    expect(await isRepeatedAfter(0.4 * LEASE)).toBe(true);
    expect(await isRepeatedAfter(LEASE)).toBe(false);
    for (const member of members) await member.store.acquire({ ...request, owner: 'of another process' });
    expect(await store.release({ name: 'a', owner: 'of another process' })).toBe('released');
    expect(await isRepeatedAfter(0.4 * LEASE)).toBe(true);
    expect(await isRepeatedAfter(LEASE)).toBe(false);
  });

  /** The members that answer refuse the lock. */
  const refused = async () => {
    for (const member of members.slice(0, 2)) await member.store.acquire({ ...request, owner: 'other' });
    expect(await store.acquire(request)).toMatchObject({ granted: false });
  };

  it('is not repeated once it is answered, where the request for the lock was answered too', async () => {
    away.store.onRelease = () => undefined;
    await refused();
    await pass(LEASE);
    expect(attempts()).toBe(1);
  });

  it('is repeated though it is answered, where the request for the lock was not and may arrive later', async () => {
    const acquire = away.store.acquire.bind(away.store);
    away.store.acquire = () => Promise.reject(new LockUnavailableError('a', { effect: 'unknown' }));
    away.store.onRelease = () => undefined;
    await refused();
    await pass(LEASE / 10);
    await acquire(request);
    await pass(LEASE / 3);
    expect(await away.store.inspect('a')).toBeNull();
  });

  it('is repeated for the lease where no majority has granted the lock', async () => {
    await refused();
    expect(await isRepeatedAfter(0.4 * LEASE)).toBe(true);
    expect(await isRepeatedAfter(LEASE)).toBe(false);
  });

  it('is repeated with the token of each of several names', async () => {
    const reply = await store.acquireAll({ names: ['a', 'b'], owner: 'me', leaseTime: LEASE });
    const tokens = reply.granted ? reply.fencingTokens : [];
    for (const name of ['a', 'b']) expect(await store.release({ name, owner: 'me' })).toBe('released');
    for (const { store: scripted } of members) {
      expect([...new Set(scripted.released.map(({ fencingToken }) => fencingToken))]).toEqual(tokens);
    }
  });

  it('is given up when the store is closed', async () => {
    await store.acquire(request);
    await store.release(request);
    await pass(1_000);
    await store.close();
    expect(await isRepeatedAfter(LEASE / 10)).toBe(false);
  });

  it('is sent as soon as the member is connected again', async () => {
    await store.close();
    let changed: ((change: ConnectionChange) => void) | undefined;
    const onConnectionChange = (listener: typeof changed) => (changed = listener);
    Object.assign(away.store, { onConnectionChange });
    store = storeOn(members, LEASE);
    await store.acquire(request);
    expect(await store.release(request)).toBe('released');
    // By now it is repeated once in a while.
    await pass(LEASE / 3);
    expect(await away.store.inspect('a')).not.toBeNull();
    away.store.onRelease = () => undefined;
    changed?.({ node: away.node, connected: true });
    await pass(0);
    expect(await away.store.inspect('a')).toBeNull();
  });
});
