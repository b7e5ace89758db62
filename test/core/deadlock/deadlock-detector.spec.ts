import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { DeadlockDetector } from '../../../lib/core/deadlock/deadlock-detector.js';
import type { NestedWait } from '../../../lib/core/deadlock/nested-wait.js';
import { encodeNote } from '../../../lib/core/deadlock/wait-notes.js';
import type { StoredLock } from '../../../lib/port/lock-store.js';

const heldBy = (owner: string): StoredLock => ({
  kind: 'lock',
  holders: [{ owner, remainingTime: 1_000, since: 0, mode: 'exclusive' }],
  queue: [],
  fencingToken: 1,
  listeners: 0,
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
    ...{ id: 'own/1', clientId: 'own', since: 2, name: 'b', label: 'lock', process: 'p', breaks: true },
    ...{ holds: ['own:1'], heldNames: ['a'], mode: 'exclusive', permits: undefined, mayBeLocal: false },
    begunAt: performance.now(),
    inspect: () => inspect('b'),
    found: (_, isBroken) => void found.push(isBroken),
  };
  detector.watch(wait);
  for (let tries = 0; found.length === 0 && tries < 50; tries++) await sleep(100);
  detector.over(wait);
  detector.close();
  expect(found).toEqual([true]);
});
