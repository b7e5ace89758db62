import { afterEach, describe, expect, it } from '@jest/globals';
import { lookFrom } from '../../../lib/client/deadlock/look.js';
import { type NestedWait, nestedWaits } from '../../../lib/client/deadlock/nested-wait.js';
import { Reading } from '../../../lib/client/deadlock/reading.js';
import { StandingDeadlocks } from '../../../lib/client/deadlock/standing-deadlocks.js';
import { findDeadlock, type GraphWait, latestOf } from '../../../lib/client/deadlock/wait-graph.js';
import { decodeNote, encodeNote, type NotedWait } from '../../../lib/client/deadlock/wait-notes.js';
import type { StoredLock, StoreWaits } from '../../../lib/store/lock-store.js';
import { Random } from '../../programs/chaos/random.js';
import { times } from '../../support/tier.js';

const wait = (id: string, holds: string[], owners: string[], rule: 'one' | 'all' = 'one'): GraphWait => ({
  id,
  since: 0,
  holds,
  blockers: { owners, rule },
});

const ids = (waits: readonly GraphWait[] | undefined) => waits?.map(({ id }) => id);

describe('findDeadlock', () => {
  it('finds the shortest circle through the start, and none where the start only waits for one', () => {
    const a = wait('a', ['1'], ['2']);
    const b = wait('b', ['2'], ['3', '1']);
    const c = wait('c', ['3'], ['1']);
    const outside = wait('outside', ['4'], ['1']);
    const all = [a, b, c, outside];
    expect(ids(findDeadlock(all, a)?.cycle)).toEqual(['a', 'b']);
    expect(ids(findDeadlock(all, c)?.cycle)).toEqual(['c', 'a', 'b']);
    expect(findDeadlock(all, outside)).toBeUndefined();
    const itself = wait('self', ['1'], ['1']);
    expect(findDeadlock([itself], itself)).toBeUndefined();
  });

  it('needs all holders of a semaphore in it', () => {
    const a = wait('a', ['1'], ['2', '3'], 'all');
    const b = wait('b', ['2'], ['1']);
    expect(findDeadlock([a, b], a)).toBeUndefined();
    const c = wait('c', ['3'], ['1']);
    expect(ids(findDeadlock([a, b, c], a)?.evidence)?.sort()).toEqual(['a', 'b', 'c']);
    expect(findDeadlock([wait('d', ['1'], [], 'all')], a)).toBeUndefined();
  });

  it('chooses one member for all: the last, and by its id among equals', () => {
    const at = (id: string, since: number) => ({ ...wait(id, [], []), since });
    expect(latestOf([at('b', 1), at('a', 2), at('c', 1)])?.id).toBe('a');
    expect(latestOf([at('b', 1), at('c', 1), at('a', 1)])?.id).toBe('c');
    expect(latestOf<GraphWait>([])).toBeUndefined();
  });
});

/** A snapshot of a fleet: who holds which lock, and who waits for which. */
interface Fleet {
  readonly locks: ReadonlyMap<string, { owners: string[]; permits: number | undefined }>;
  readonly waits: readonly { id: string; name: string; holds: string[]; client: string }[];
}

function fleetOf(random: Random): Fleet {
  const scopes = random.between(2, 9);
  const processes = random.between(1, 4);
  const count = random.between(2, 7);
  const locks = new Map<string, { owners: string[]; permits: number | undefined }>();
  const holds = Array.from({ length: scopes }, (): string[] => []);
  let serial = 0;
  for (let n = 0; n < count; n++) {
    const permits = random.between(0, 3) === 0 ? random.between(2, 3) : undefined;
    const owners = [];
    for (let k = 0; k < (permits ?? 1); k++) {
      const scope = random.between(0, scopes - 1);
      const owner = `p${String(scope % processes)}:${String(++serial)}`;
      holds[scope]!.push(owner);
      owners.push(owner);
    }
    locks.set(`lock${String(n)}`, { owners, permits });
  }
  const waits = holds.flatMap((held, scope) =>
    held.length === 0 || random.between(0, 4) === 0
      ? []
      : [
          {
            id: `w${String(scope)}`,
            name: `lock${String(random.between(0, count - 1))}`,
            holds: held,
            client: `p${String(scope % processes)}`,
          },
        ],
  );
  return { locks, waits };
}

/**
 * Written another way than the code: a wait can end if a scope can free what it wants. What is left when no wait can end any
 * more is stuck. A stuck wait is a member of a deadlock where it is in a strongly connected component, by Tarjan.
 */
function membersOf({ locks, waits }: Fleet): Set<string> {
  const waiting = new Map(waits.map((each) => [each.id, each]));
  const holderOf = (owner: string) => [...waiting.values()].find(({ holds }) => holds.includes(owner));
  for (let changed = true; changed;) {
    changed = false;
    for (const { id, name } of [...waiting.values()]) {
      const { owners, permits } = locks.get(name)!;
      const isFree = (owner: string) => [undefined, id].includes(holderOf(owner)?.id);
      const free = owners.filter(isFree).length;
      if (permits === undefined ? free === owners.length : free > 0) changed = waiting.delete(id) || changed;
    }
  }
  const edges = new Map(
    [...waiting.values()].map(({ id, name }) => [
      id,
      [...new Set(locks.get(name)!.owners.map((owner) => holderOf(owner)?.id ?? ''))].filter(Boolean),
    ]),
  );
  return tarjan(edges);
}

function tarjan(edges: ReadonlyMap<string, readonly string[]>): Set<string> {
  const index = new Map<string, number>();
  const low = new Map<string, number>();
  const stack: string[] = [];
  const members = new Set<string>();
  const visit = (node: string) => {
    index.set(node, index.size);
    low.set(node, index.get(node)!);
    stack.push(node);
    for (const next of edges.get(node) ?? []) {
      if (!index.has(next)) visit(next);
      if (stack.includes(next)) low.set(node, Math.min(low.get(node)!, low.get(next)!));
    }
    if (low.get(node) !== index.get(node)) return;
    const component = stack.splice(stack.indexOf(node));
    if (component.length > 1) for (const member of component) members.add(member);
  };
  for (const node of edges.keys()) if (!index.has(node)) visit(node);
  return members;
}

describe('a look over processes', () => {
  afterEach(() => {
    forget();
  });

  const forget = () => {
    for (const wait of [...nestedWaits]) nestedWaits.delete(wait);
  };

  const storedLock = ({
    owners,
    permits,
  }: {
    owners: string[];
    permits: number | undefined;
  }): StoredLock => ({
    kind: permits === undefined ? 'lock' : 'semaphore',
    holders: owners.map((owner) => ({ owner, remainingTime: 1_000, since: 0, mode: 'exclusive' })),
    queue: [],
    fencingToken: 1,
    listeners: 0,
  });

  it('agrees with Tarjan on random fleets, from the view of each process', async () => {
    const FLEETS = times(500, 3_000);
    let [found, none] = [0, 0];
    for (let seed = 1; seed <= FLEETS; seed++) {
      const fleet = fleetOf(new Random(seed));
      const expected = membersOf(fleet);
      const inspect = (name: string) => Promise.resolve(storedLock(fleet.locks.get(name)!));
      const describe = ({ id, name, holds }: Fleet['waits'][number]) => ({
        ...{ id, name, holds, label: name, process: '', since: 0, breaks: true },
        ...{ mode: 'exclusive' as const, permits: fleet.locks.get(name)!.permits },
      });
      for (const client of new Set(fleet.waits.map((each) => each.client))) {
        const own = fleet.waits
          .filter((each) => each.client === client)
          .map((each): NestedWait => ({
            ...describe(each),
            ...{ clientId: client, heldNames: [] },
            inspect: () => inspect(each.name),
            found: () => undefined,
            begunAt: 0,
            mayBeLocal: true,
          }));
        forget();
        for (const each of own) nestedWaits.add(each);
        const find = (other: string) => {
          const waits = fleet.waits.filter((each) => each.client === other).map(describe);
          return Promise.resolve(encodeNote({ process: other, stamp: 1, waits }));
        };
        const waits: StoreWaits = { find, keep: () => Promise.resolve(), forget: () => Promise.resolve() };
        const reading = new Reading(client, { inspect, waits });
        for (const start of own) {
          const deadlock = await lookFrom(start, reading);
          const seen = { seed, id: start.id, isMember: deadlock !== undefined };
          expect(seen).toEqual({ ...seen, isMember: expected.has(start.id) });
          if (deadlock === undefined) none++;
          else found++;
          for (const { id } of deadlock?.cycle ?? []) expect(expected.has(id)).toBe(true);
        }
      }
    }
    expect(found).toBeGreaterThan(FLEETS / 3);
    expect(none).toBeGreaterThan(FLEETS / 3);
  });
});

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
