import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { LockUnavailableError } from '../../../lib/index.js';
import type { ConnectionChange } from '../../../lib/store/store-health.js';
import { storeOn, scriptedMembers } from './scripted-member.js';

beforeEach(() => {
  jest.useFakeTimers();
});

afterEach(() => {
  jest.useRealTimers();
});

it('a release that has not reached a node is sent as soon as the node is connected again', async () => {
  const members = scriptedMembers(3);
  const away = members[2]!;
  let changed: ((change: ConnectionChange) => void) | undefined;
  Object.assign(away.store, {
    onConnectionChange: (listener: typeof changed) => {
      changed = listener;
    },
  });
  const store = storeOn(members, 30_000);
  const lock = { name: 'a', owner: 'me:1' };
  expect(await store.acquire({ ...lock, leaseTime: 30_000 })).toMatchObject({ granted: true });
  await jest.advanceTimersByTimeAsync(1_000);
  const release = jest.spyOn(away.store, 'release');
  release.mockRejectedValue(new LockUnavailableError('a', { effect: 'refused' }));
  expect(await store.release(lock)).toBe('released');
  // By now it is repeated once in a while.
  await jest.advanceTimersByTimeAsync(10_000);
  expect(await away.store.inspect('a')).not.toBeNull();
  release.mockRestore();
  changed?.({ node: away.node, connected: true });
  await jest.advanceTimersByTimeAsync(0);
  expect(await away.store.inspect('a')).toBeNull();
});
