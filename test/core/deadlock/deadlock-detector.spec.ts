import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, jest } from '@jest/globals';
import { DeadlockDetector } from '../../../lib/core/deadlock/deadlock-detector.js';
import type { NestedWait } from '../../../lib/core/deadlock/nested-wait.js';
import { encodeNote } from '../../../lib/core/deadlock/wait-notes.js';
import type { StoredLock, StoreWaits } from '../../../lib/port/lock-store.js';
import { until } from '../../scenarios/until.js';

const heldBy = (owner: string): StoredLock => ({
  kind: 'lock',
  holders: [{ owner, remainingTime: 1_000, since: 0, mode: 'exclusive' }],
  queue: [],
  fencingToken: 1,
  listeners: 0,
});

const waitFor = (name: string): NestedWait => ({
  ...{ id: 'own/1', clientId: 'own', since: 2, name, label: 'lock', process: 'p', breaks: true },
  ...{ holds: ['own:1'], heldNames: ['a'], mode: 'exclusive', permits: undefined, mayBeLocal: false },
  begunAt: performance.now(),
  inspect: () => Promise.resolve(heldBy('other:1')),
  found: () => undefined,
});

it('a note is removed when the last wait of which it tells is over', async () => {
  const waits = {
    keep: jest.fn(() => Promise.resolve()),
    forget: jest.fn<StoreWaits['forget']>(() => Promise.resolve()),
    find: () => Promise.resolve(undefined),
  };
  const inspect = () => Promise.resolve(heldBy('other:1'));
  const detector = new DeadlockDetector({ inspect, waits }, { clientId: 'own', label: 'p' });
  const wait = waitFor('b');
  detector.watch(wait);
  await until(() => waits.keep.mock.calls.length > 0);
  expect(waits.forget).not.toHaveBeenCalled();
  detector.over(wait);
  await until(() => waits.forget.mock.calls.length > 0);
  detector.close();
  expect(waits.forget).toHaveBeenCalledWith('own');
});

it('a look that gets no answer refutes nothing: the deadlock is found by the looks around it', async () => {
  let [asked, stamp] = [0, 0];
  const inspect = (name: string): Promise<StoredLock> => {
    if (name === 'b') asked++;
    return asked % 3 === 0
      ? Promise.reject(new Error('no answer'))
      : Promise.resolve(heldBy(name === 'b' ? 'other:1' : 'own:1'));
  };
  const theirs = { id: 'other/1', since: 1, name: 'a', label: 'lock', holds: ['other:1'], breaks: true };
  const waits = {
    keep: () => Promise.resolve(),
    forget: () => Promise.resolve(),
    find: () =>
      Promise.resolve(
        encodeNote({
          process: 'p',
          stamp: ++stamp,
          waits: [{ ...theirs, mode: 'exclusive', permits: undefined }],
        }),
      ),
  };
  const detector = new DeadlockDetector({ inspect, waits }, { clientId: 'own', label: 'p' });
  const found: boolean[] = [];
  const wait: NestedWait = {
    ...waitFor('b'),
    inspect: () => inspect('b'),
    found: (_, isBroken) => void found.push(isBroken),
  };
  detector.watch(wait);
  for (let tries = 0; found.length === 0 && tries < 50; tries++) await sleep(100);
  detector.over(wait);
  detector.close();
  expect(found).toEqual([true]);
});

it('goes on looking soon after its process has stood still in the middle of a look', async () => {
  const STOOD_STILL = 600;
  const waits = {
    keep: jest.fn(() => Promise.resolve()),
    forget: () => Promise.resolve(),
    find: () => Promise.resolve(undefined),
  };
  const inspect = () => Promise.resolve(heldBy('other:1'));
  const detector = new DeadlockDetector({ inspect, waits }, { clientId: 'own', label: 'p' });
  let stood = false;
  const wait: NestedWait = {
    ...waitFor('b'),
    mayBeLocal: true,
    get heldNames() {
      if (!stood) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STOOD_STILL);
      stood = true;
      return ['a'];
    },
  };
  detector.watch(wait);
  await until(() => stood);
  // It is not of those that have become long meanwhile.
  const next = waitFor('c');
  detector.over(wait);
  detector.watch(next);
  const begun = performance.now();
  while (waits.keep.mock.calls.length === 0 && performance.now() - begun < 10 * STOOD_STILL) await sleep(20);
  detector.over(next);
  detector.close();
  expect(performance.now() - begun).toBeLessThan(5 * STOOD_STILL);
});
