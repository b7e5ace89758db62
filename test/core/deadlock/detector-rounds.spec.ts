import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { DeadlockDetector } from '../../../lib/core/deadlock/deadlock-detector.js';
import { type NestedWait, nestedWaits } from '../../../lib/core/deadlock/nested-wait.js';
import { decodeNote, encodeNote } from '../../../lib/core/deadlock/wait-notes.js';
import { now } from '../../../lib/core/deadline.js';
import { LockUnavailableError } from '../../../lib/index.js';
import type { StoredLock, StoreWaits } from '../../../lib/port/lock-store.js';

/** The owners of the locks, by name. */
let owners: Map<string, string>;
let asked: string[];
let found: { id: string; names: string[]; isBroken: boolean }[];
let notes: { at: number; text: string; time: number }[];
let forgotten: string[];
/** What the other process has told. */
let theirs: () => string | undefined;
let refusals: unknown[];
let waits: StoreWaits | undefined;
let detector: DeadlockDetector;
let begun: number;

const inspect = (name: string): Promise<StoredLock | null> => {
  asked.push(name);
  const owner = owners.get(name);
  if (owner === undefined) return Promise.resolve(null);
  const holders = [{ owner, remainingTime: 1_000, since: 0, mode: 'exclusive' as const }];
  return Promise.resolve({ kind: 'lock', holders, queue: [], fencingToken: 1, listeners: 0 });
};

function open(): void {
  detector = new DeadlockDetector(
    { inspect, waits },
    { clientId: 'own', label: 'this', onNotesRefused: (error) => refusals.push(error) },
  );
}

beforeEach(() => {
  jest.useFakeTimers();
  begun = now();
  [owners, asked, found, notes, forgotten, refusals] = [new Map(), [], [], [], [], []];
  theirs = () => undefined;
  waits = {
    keep: (client, text, time) => {
      notes.push({ at: Math.round(now() - begun), text, time });
      expect(client).toBe('own');
      return Promise.resolve();
    },
    forget: (client) => {
      forgotten.push(client);
      return Promise.resolve();
    },
    find: () => Promise.resolve(theirs()),
  };
  open();
});

afterEach(() => {
  detector.close();
  for (const wait of [...nestedWaits]) nestedWaits.delete(wait);
  jest.useRealTimers();
});

/** A wait for a lock under others, each of which is of the owner `own:<name>`. */
function waitFor(id: string, name: string, heldNames: string[], part: Partial<NestedWait> = {}): NestedWait {
  return {
    ...{
      id,
      name,
      heldNames,
      clientId: 'own',
      since: Number(id),
      label: `label of ${name}`,
      process: 'this',
    },
    ...{ holds: heldNames.map((held) => `own:${held}`), mode: 'exclusive', permits: undefined, breaks: true },
    ...{ begunAt: now(), mayBeLocal: true, inspect: () => inspect(name) },
    found: (cycle, isBroken) => found.push({ id, names: cycle.map((step) => step.name), isBroken }),
    ...part,
  };
}
const watch = (...args: Parameters<typeof waitFor>): NestedWait => {
  const wait = waitFor(...args);
  detector.watch(wait);
  return wait;
};
const pass = (time: number) => jest.advanceTimersByTimeAsync(time);

describe('a circle of waits in one process', () => {
  beforeEach(() => {
    owners.set('a', 'own:a').set('b', 'own:b').set('c', 'own:c');
  });

  it('ends soon with the wait that began last, which is told last', async () => {
    watch('2', 'a', ['c']);
    watch('3', 'c', ['b']);
    watch('1', 'b', ['a']);
    await pass(19);
    expect([asked, found]).toEqual([[], []]);
    await pass(21);
    expect(found.slice(0, 3).map(({ id, names }) => [id, names.join('')])).toEqual(
      expect.arrayContaining([
        ['1', 'bca'],
        ['2', 'abc'],
        ['3', 'cab'],
      ]),
    );
    expect(found.slice(0, 3).map(({ isBroken }) => isBroken)).toEqual([false, false, true]);
    expect(found[2]?.id).toBe('3');
  });

  it('ends with none where none breaks, and with the last of those that do', async () => {
    const report = { breaks: false };
    const members = [watch('1', 'b', ['a'], report), watch('2', 'a', ['b'], report)];
    await pass(40);
    expect(found.map(({ isBroken }) => isBroken)).not.toContain(true);
    expect(new Set(found.map(({ id }) => id))).toEqual(new Set(['1', '2']));
    for (const member of members) detector.over(member);
    found = [];
    watch('3', 'b', ['a']);
    watch('4', 'a', ['b'], report);
    await pass(40);
    expect(found.find(({ isBroken }) => isBroken)?.id).toBe('3');
  });

  it('costs nothing where a wait is over soon, wants what no wait holds, or waits for another process', async () => {
    const short = watch('1', 'b', ['a']);
    await pass(15);
    detector.over(short);
    await pass(100);
    expect([asked, nestedWaits.size, jest.getTimerCount()]).toEqual([[], 0, 0]);
    watch('2', 'b', ['a']);
    watch('3', 'x', ['c']);
    watch('4', 'c', ['a'], { mayBeLocal: false });
    await pass(400);
    // Once each: only what may be a member is looked at.
    expect(asked).not.toContain('b');
    expect(asked.filter((name) => name === 'c')).toEqual([]);
    expect(nestedWaits.size).toBe(3);
  });
});

describe('a long wait', () => {
  it('is told to the other processes, again and again, until it is over', async () => {
    const wait = watch('1', 'a', ['b']);
    await pass(480);
    expect(notes).toEqual([]);
    await pass(50);
    expect(notes).toHaveLength(1);
    expect(notes[0]?.time).toBe(2_000);
    expect(decodeNote(notes[0]?.text)).toMatchObject({
      process: 'this',
      waits: [{ id: '1', name: 'a', label: 'label of a', holds: ['own:b'], breaks: true, since: 1 }],
    });
    await pass(1_000);
    expect(notes).toHaveLength(6);
    const stamps = notes.map(({ text }) => decodeNote(text)?.stamp ?? 0);
    expect(stamps).toEqual([...new Set(stamps)].sort((a, b) => a - b));
    expect(asked.length).toBe(6);
    const second = watch('2', 'c', ['d']);
    await pass(700);
    detector.over(wait);
    await pass(300);
    expect(forgotten).toEqual([]);
    expect(decodeNote(notes.at(-1)?.text)?.waits.map(({ id }) => id)).toEqual(['2']);
    const { length } = notes;
    detector.over(second);
    // At once, and not with the next round.
    await pass(1);
    expect(forgotten).toEqual(['own']);
    await pass(1_000);
    expect([forgotten, notes.length, nestedWaits.size, jest.getTimerCount()]).toEqual([
      ['own'],
      length,
      0,
      0,
    ]);
  });

  it('is told of among the first 256, and looked at in turn', async () => {
    for (let n = 0; n < 300; n++) watch(String(n), `a${String(n)}`, [`b${String(n)}`]);
    await pass(800);
    expect(decodeNote(notes.at(-1)?.text)?.waits).toHaveLength(256);
    await pass(2_000);
    const rounds = notes.length;
    expect(new Set(asked).size).toBe(256);
    expect(asked.length).toBeLessThanOrEqual(32 * rounds);
  });

  it('is looked at where the store keeps no notes, too', async () => {
    waits = undefined;
    open();
    watch('1', 'a', ['b']);
    await pass(1_000);
    expect(asked.length).toBeGreaterThan(1);
  });

  it('is not told of any more after the end of the client', async () => {
    watch('1', 'a', ['b']);
    await pass(600);
    const { length } = notes;
    detector.close();
    watch('2', 'c', ['d']);
    await pass(2_000);
    expect([notes.length, jest.getTimerCount()]).toEqual([length, 0]);
  });

  it.each([true, false])('whose note is refused is told of again later, permanent: %p', async (permanent) => {
    const error = new LockUnavailableError(undefined, { permanent });
    const tries: number[] = [];
    Object.assign(waits ?? {}, {
      keep: () => {
        tries.push(Math.round(now() - begun));
        return Promise.reject(error);
      },
    });
    const wait = watch('1', 'a', ['b']);
    await pass(5_500);
    expect(tries).toHaveLength(3);
    expect((tries[1] ?? 0) - (tries[0] ?? 0)).toBeGreaterThanOrEqual(2_000);
    expect(refusals).toEqual(permanent ? [error] : []);
    detector.over(wait);
    await pass(1_000);
    // No note of it has arrived.
    expect([forgotten, tries.length]).toEqual([[], 3]);
  });
});

describe('a circle of waits over two processes', () => {
  const note = (stamp: number, since: number) =>
    encodeNote({
      process: 'theirs',
      stamp,
      waits: [
        {
          ...{ id: 'other/1', since, name: 'b', label: 'label of b', holds: ['other:1'], breaks: true },
          ...{ mode: 'exclusive', permits: undefined },
        },
      ],
    });

  beforeEach(() => {
    owners.set('a', 'other:1').set('b', 'own:b');
  });

  it.each([
    ['ends with the wait of this process, after one more look', 10, 5, true],
    ['is told of, and ends with the wait of the other process', 10, 20, false],
  ])('%s', async (_, since, other, isBroken) => {
    let stamp = 0;
    theirs = () => note(++stamp, other);
    watch(String(since), 'a', ['b']);
    const looks = isBroken ? 5 : 4;
    await pass(520 + (looks - 2) * 200);
    expect(found).toEqual([]);
    await pass(200);
    expect(found).toEqual([{ id: '10', names: ['a', 'b'], isBroken }]);
    await pass(2_000);
    expect(found).toHaveLength(1);
  });

  it('is none while the other process tells nothing new', async () => {
    theirs = () => note(1, 5);
    watch('10', 'a', ['b']);
    await pass(5_000);
    expect(found).toEqual([]);
  });
});
