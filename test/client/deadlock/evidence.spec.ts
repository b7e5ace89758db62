import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { blockersOf } from '../../../lib/client/deadlock/blockers.js';
import { Confirmation } from '../../../lib/client/deadlock/confirmation.js';
import type { SeenWait } from '../../../lib/client/deadlock/look.js';
import { type NestedWait, NestedWaits, nestedWaits } from '../../../lib/client/deadlock/nested-wait.js';
import { Reading } from '../../../lib/client/deadlock/reading.js';
import { decodeNote, encodeNote, type NotedWait } from '../../../lib/client/deadlock/wait-notes.js';
import type { StoredLock } from '../../../lib/store/lock-store.js';

type Mode = 'exclusive' | 'shared';

const stored = (
  holders: readonly [owner: string, mode: Mode][],
  queue: readonly Mode[] = [],
): StoredLock => ({
  kind: 'lock',
  holders: holders.map(([owner, mode]) => ({ owner, mode, remainingTime: 1_000, since: 0 })),
  queue: queue.map((mode) => ({ owner: 'queued:1', mode, since: 0 })),
  fencingToken: 1,
  listeners: 0,
});

describe('the holds that a wait ends with', () => {
  const writer = { mode: 'exclusive', permits: undefined } as const;
  const reader = { mode: 'shared', permits: undefined } as const;
  const NONE = { owners: [], rule: 'one' };

  it('are all holders for a wait that excludes them, and none of a lock that is free', () => {
    const held = stored([
      ['a:1', 'shared'],
      ['b:1', 'shared'],
    ]);
    expect(blockersOf(held, writer)).toEqual({ owners: ['a:1', 'b:1'], rule: 'one' });
    expect(blockersOf(null, writer)).toEqual(NONE);
    expect(blockersOf(null, reader)).toEqual(NONE);
  });

  it('are for a reader the writers, or what a writer before it waits for', () => {
    const held = stored([
      ['a:1', 'exclusive'],
      ['a:2', 'shared'],
    ]);
    expect(blockersOf(held, reader)).toEqual({ owners: ['a:1'], rule: 'one' });
    const readers = (...queue: Mode[]) => stored([['a:2', 'shared']], queue);
    expect(blockersOf(readers('shared', 'exclusive'), reader)).toEqual({ owners: ['a:2'], rule: 'one' });
    expect(blockersOf(readers('shared'), reader)).toEqual(NONE);
    expect(blockersOf(readers(), reader)).toEqual(NONE);
  });

  it('are all holders of a semaphore together, and none while it has a permit left', () => {
    const held = stored([
      ['a:1', 'shared'],
      ['b:1', 'shared'],
    ]);
    expect(blockersOf(held, { mode: 'shared', permits: 2 })).toEqual({ owners: ['a:1', 'b:1'], rule: 'all' });
    expect(blockersOf(held, { mode: 'shared', permits: 3 })).toEqual(NONE);
  });
});

describe('a note', () => {
  const wait: NotedWait = {
    ...{ id: 'p/1', since: 1, name: 'a', label: 'a', mode: 'shared', permits: 3 },
    ...{ holds: ['p:1'], breaks: true },
  };
  const note = { process: 'p', stamp: 7, waits: [wait, { ...wait, permits: undefined, mode: 'exclusive' }] };

  it('is read as it was written', () => {
    expect(decodeNote(encodeNote(note as Parameters<typeof encodeNote>[0]))).toEqual(note);
    expect(decodeNote(undefined)).toBeUndefined();
  });

  it.each<[string, object]>([
    ['another version', { version: 2 }],
    ['no process', { process: 5 }],
    ['no stamp', { stamp: '7' }],
    ['no waits', { waits: {} }],
    ['a wait that is none', { waits: [wait, null] }],
    ['a wait that is a text', { waits: ['p/1'] }],
    ['no id', { waits: [{ ...wait, id: 5 }] }],
    ['no name', { waits: [{ ...wait, name: undefined }] }],
    ['no label', { waits: [{ ...wait, label: null }] }],
    ['no beginning', { waits: [{ ...wait, since: '1' }] }],
    ['another mode', { waits: [{ ...wait, mode: 'upgrade' }] }],
    ['permits that are no number', { waits: [{ ...wait, permits: '3' }] }],
    ['no word on whether it breaks', { waits: [{ ...wait, breaks: 1 }] }],
    ['no holds', { waits: [{ ...wait, holds: 'p:1' }] }],
    ['a hold that is no owner', { waits: [{ ...wait, holds: ['p:1', 2] }] }],
  ])('with %s is none', (_, part) => {
    const text = JSON.stringify({
      ...(JSON.parse(encodeNote({ ...note, waits: [wait] })) as object),
      ...part,
    });
    expect(decodeNote(text)).toBeUndefined();
  });

  it.each(['', 'null', '{', '5', '[]'])('of the text %j is none', (text) => {
    expect(decodeNote(text)).toBeUndefined();
  });
});

const nested = (id: string, part: Partial<NestedWait> = {}): NestedWait => ({
  ...{ id, clientId: 'p', since: 0, name: 'a', label: 'a', process: 'p', breaks: true, begunAt: 0 },
  ...{ holds: ['p:1'], heldNames: ['b'], mode: 'exclusive', permits: undefined, mayBeLocal: true },
  inspect: () => Promise.resolve(null),
  found: () => undefined,
  ...part,
});

it('a wait may block another only while one wants what it holds', () => {
  const waits = new NestedWaits();
  const [first, second] = [nested('1', { name: 'b' }), nested('2', { name: 'b' })];
  const holder = nested('3');
  expect(waits.mayBlock(holder)).toBe(false);
  waits.add(first).add(second).add(first);
  expect([waits.size, [...waits], waits.mayBlock(holder)]).toEqual([2, [first, second], true]);
  expect(waits.mayBlock(nested('4', { heldNames: ['c'] }))).toBe(false);
  waits.delete(first);
  waits.delete(first);
  expect([waits.has(first), waits.has(second), waits.mayBlock(holder)]).toEqual([false, true, true]);
  waits.delete(second);
  expect([waits.size, waits.mayBlock(holder)]).toEqual([0, false]);
});

describe('a deadlock over processes', () => {
  const seen = (id: string, note?: { client: string; stamp: number }): SeenWait => ({
    ...{ id, since: 0, name: 'a', label: 'a', process: 'p', mode: 'exclusive', permits: undefined },
    ...{ holds: [], breaks: true, blockers: { owners: [], rule: 'one' }, local: undefined, note },
  });
  const among = (...waits: SeenWait[]) => ({ cycle: waits, evidence: waits });
  const at = (stamp: number, other = stamp) =>
    among(seen('own/1'), seen('p/1', { client: 'p', stamp }), seen('q/1', { client: 'q', stamp: other }));

  it('is confirmed by looks with news of all other processes', () => {
    const confirmation = new Confirmation();
    expect(confirmation.looks).toBe(0);
    const looks = [at(1), at(1), at(2), at(3, 2), at(3), at(4)].map((deadlock) => {
      confirmation.count(deadlock);
      return confirmation.looks;
    });
    // The news of a look that does not count is not taken for known.
    expect(looks).toEqual([1, 1, 2, 2, 3, 4]);
  });

  it('is counted anew where a look shows none, or another one', () => {
    const confirmation = new Confirmation();
    const looks = [
      at(1),
      at(2),
      undefined,
      at(3),
      at(4),
      among(seen('own/1'), seen('p/2', { client: 'p', stamp: 5 })),
    ].map((deadlock) => {
      confirmation.count(deadlock);
      return confirmation.looks;
    });
    expect(looks).toEqual([1, 2, 0, 1, 2, 1]);
  });

  it('is another one where other waits are its evidence, and the same in whatever order they are seen', () => {
    const confirmation = new Confirmation();
    const members = [seen('own/1'), seen('p/1', { client: 'p', stamp: 1 })];
    const cycle = [seen('own/1')];
    confirmation.count({ cycle, evidence: members });
    confirmation.count({ cycle, evidence: [seen('p/1', { client: 'p', stamp: 2 }), seen('own/1')] });
    expect(confirmation.looks).toBe(2);
    confirmation.count({ cycle, evidence: [seen('own/1'), seen('p/3', { client: 'p', stamp: 3 })] });
    expect(confirmation.looks).toBe(1);
  });
});

describe('what looks of one moment read', () => {
  beforeEach(() => {
    for (const wait of [...nestedWaits]) nestedWaits.delete(wait);
  });
  afterEach(() => {
    for (const wait of [...nestedWaits]) nestedWaits.delete(wait);
  });

  it('is each lock once, of the store that has it', async () => {
    const asked: string[] = [];
    const inspect = (client: string) => (name: string) => {
      asked.push(`${client} ${name}`);
      return Promise.resolve(null);
    };
    const reading = new Reading('own', { inspect: inspect('own') });
    const own = nested('1', { clientId: 'own', inspect: () => inspect('own')('a') });
    const other = nested('2', { clientId: 'other', inspect: () => inspect('other')('a') });
    for (const local of [own, undefined, other, other]) await reading.inspect({ name: 'a', local });
    await reading.inspect({ name: 'b', local: undefined });
    expect(asked).toEqual(['own a', 'other a', 'own b']);
    expect(await new Reading('own').inspect({ name: 'a', local: undefined })).toBeNull();
  });

  it('is each note of another process once, and none of its own', async () => {
    const asked: string[] = [];
    const waits = {
      keep: () => Promise.resolve(),
      forget: () => Promise.resolve(),
      find: (client: string) => {
        asked.push(client);
        const wait: NotedWait = {
          ...{ id: 'p/1', since: 1, name: 'a', label: 'a', mode: 'exclusive', permits: undefined },
          ...{ holds: ['p:1', 'p:1'], breaks: true },
        };
        const note = encodeNote({ process: 'label', stamp: 3, waits: [wait, { ...wait, id: 'p/2' }] });
        return Promise.resolve(client === 'p' ? note : 'no note');
      },
    };
    const reading = new Reading('own', { inspect: () => Promise.resolve(null), waits });
    const note = await reading.noteOf('p');
    expect(note).toMatchObject({ process: 'label', stamp: 3 });
    expect(note?.under('p:1').map(({ id }) => id)).toEqual(['p/1', 'p/2']);
    expect(note?.under('p:2')).toEqual([]);
    expect(await reading.noteOf('p')).toBe(note);
    expect(await reading.noteOf('q')).toBeUndefined();
    expect(await reading.noteOf('own')).toBeUndefined();
    expect(asked).toEqual(['p', 'q']);
    expect(await new Reading('own').noteOf('p')).toBeUndefined();
  });

  it('is of this process the waits under each of their holds', () => {
    const [first, second] = [nested('1', { holds: ['p:1', 'p:2'] }), nested('2', { holds: ['p:2'] })];
    nestedWaits.add(first).add(second);
    const reading = new Reading('p');
    expect(reading.under('p:1')).toEqual([first]);
    expect(reading.under('p:2')).toEqual([first, second]);
    expect(reading.under('p:3')).toEqual([]);
  });
});
