import { expect, it } from '@jest/globals';
import { StandingDeadlocks } from '../../../lib/client/deadlock/standing-deadlocks.js';
import { encodeNote } from '../../../lib/client/deadlock/wait-notes.js';
import type { StoredLock } from '../../../lib/store/lock-store.js';

const held = (name: string, owner: string): StoredLock => ({
  kind: 'lock',
  holders: [{ owner, remainingTime: 1_000, since: 0, mode: 'exclusive' }],
  queue: [{ owner: `waits for ${name}`, mode: 'exclusive', since: 0 }],
  fencingToken: 1,
  listeners: 0,
});

/** Two processes, each of which holds one lock and waits for the other. */
function twoProcesses() {
  let stamp = 0;
  const locks = new Map([
    ['a', held('a', 'p:1')],
    ['b', held('b', 'q:1')],
  ]);
  const notes = (client: string, name: string, holds: string): string =>
    encodeNote({
      process: client,
      stamp,
      waits: [
        {
          ...{ id: `${client}/1`, since: 1, name, label: `label of ${name}`, holds: [holds] },
          ...{ breaks: false, mode: 'exclusive', permits: undefined },
        },
      ],
    });
  const store = {
    inspect: (name: string) => Promise.resolve(locks.get(name) ?? null),
    waits: {
      keep: () => Promise.resolve(),
      forget: () => Promise.resolve(),
      find: (client: string) =>
        Promise.resolve(client === 'p' ? notes('p', 'b', 'p:1') : notes('q', 'a', 'q:1')),
    },
  };
  return {
    standing: new StandingDeadlocks(store, 'observer'),
    locks,
    writeAgain: () => stamp++,
  };
}

it('a deadlock of two processes is certain when the fourth look in a row shows it with news of both', async () => {
  const { standing, locks, writeAgain } = twoProcesses();
  const steps = [
    { name: 'b', label: 'label of b', process: 'p' },
    { name: 'a', label: 'label of a', process: 'q' },
  ];
  const found: (readonly unknown[])[] = [];
  for (let look = 0; look < 3; look++) {
    found.push(await standing.look(['a', 'b']));
    writeAgain();
  }
  expect(found).toEqual([[], [], []]);
  // Whatever lock the look begins with, and once for both of its locks.
  expect(await standing.look(['b', 'a'])).toEqual([steps]);
  writeAgain();
  expect(await standing.look(['a'])).toEqual([steps]);
  locks.delete('a');
  expect(await standing.look(['a', 'b'])).toEqual([]);
  locks.set('a', held('a', 'p:1'));
  expect(await standing.look(['a', 'b'])).toEqual([]);
});

it('looks that show the same notes make nothing certain', async () => {
  const { standing } = twoProcesses();
  for (let look = 0; look < 6; look++) expect(await standing.look(['a', 'b'])).toEqual([]);
});
