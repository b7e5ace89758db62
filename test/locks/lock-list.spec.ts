import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { LockKindMismatchError, LockService, type LockStore, LockUnavailableError } from '../../lib/index.js';
import type { ListedName, NamesReply, StoredLock, StoreListing } from '../../lib/store/index.js';
import { ScriptedStore } from '../doubles/scripted-store.js';

const held = (owner: string, more: Partial<StoredLock> = {}): StoredLock => ({
  kind: 'lock',
  holders: [{ owner, mode: 'exclusive', remainingTime: 1_000, since: Date.now() - 500 }],
  queue: [],
  fencingToken: 7,
  listeners: 0,
  ...more,
});

/** A store that names its locks in steps, as a Redis does, and knows each of them. */
class NamingStore extends ScriptedStore {
  readonly steps: ListedName[][] = [];
  readonly known = new Map<string, StoredLock | Error>();
  readonly asked: (string | undefined)[] = [];

  override readonly listing: StoreListing = {
    names: ({ cursor }) => {
      this.asked.push(cursor);
      const step = Number(cursor ?? 0);
      const reply: NamesReply = {
        names: this.steps[step] ?? [],
        cursor: step + 1 < this.steps.length ? String(step + 1) : undefined,
      };
      return Promise.resolve(reply);
    },
  };

  override inspect(name: string): Promise<StoredLock | null> {
    const found = this.known.get(name);
    return found instanceof Error ? Promise.reject(found) : Promise.resolve(found ?? null);
  }

  /** One step with locks of these names, which are held. */
  step(...names: string[]): void {
    this.steps.push(names.map((name) => ({ name, isQueue: false })));
    for (const name of names) this.known.set(name, held('other:1'));
  }
}

let store: NamingStore;
let locks: LockService;

beforeEach(() => {
  store = new NamingStore();
  locks = new LockService({ store });
});

afterEach(() => locks.close());

/** The names of each page. */
async function pages(limit?: number): Promise<string[][]> {
  const found: string[][] = [];
  let cursor: string | undefined;
  do {
    const page = await locks.list({ limit, cursor });
    found.push(page.locks.map(({ name }) => name));
    cursor = page.cursor ?? undefined;
  } while (cursor !== undefined);
  return found;
}

describe('list', () => {
  it('goes through the steps of the store, by name in each, and says with which page it ends', async () => {
    store.step('c', 'a');
    store.step();
    store.step('d', 'b');
    expect(await pages()).toEqual([['a', 'c', 'b', 'd']]);
    // A page that is full at the end of a step goes on with the next step.
    expect(await pages(2)).toEqual([
      ['a', 'c'],
      ['b', 'd'],
    ]);
    expect(await pages(3)).toEqual([['a', 'c', 'b'], ['d']]);
    expect(await pages(1)).toEqual([['a'], ['c'], ['b'], ['d']]);
    expect(await pages(4)).toEqual([['a', 'c', 'b', 'd']]);
  });

  it('has no lock twice that a step names twice, and none by its queue that is held', async () => {
    const waiting = { owner: 'waiter:1', mode: 'exclusive', since: Date.now() - 300, dead: false } as const;
    store.steps.push([
      { name: 'a', isQueue: true },
      { name: 'a', isQueue: false },
      { name: 'a', isQueue: true },
      { name: 'b', isQueue: true },
      { name: 'c', isQueue: true },
    ]);
    store.known.set('a', held('other:1')).set('b', held('other:2'));
    store.known.set('c', held('', { holders: [], queue: [waiting], listeners: 2 }));
    expect(await pages()).toEqual([['a', 'c']]);
  });

  it('leaves out what is no lock, or none any more, and fails with the store', async () => {
    store.step('a', 'b', 'c');
    store.known.set('a', new LockKindMismatchError('a', { expected: 'lock', found: 'list' }));
    store.known.delete('b');
    store.known.set(
      'c',
      held('', { holders: [], queue: [{ owner: 'gone:1', mode: 'exclusive', since: 0, dead: true }] }),
    );
    expect(await pages()).toEqual([[]]);
    store.known.set('c', new LockUnavailableError('c'));
    await expect(pages()).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
  });

  it('tells of each lock since when, for how long, and by how many it is waited for', async () => {
    const time = Date.now();
    const waiter = (owner: string, since: number, dead = false) =>
      ({ owner, mode: 'exclusive', since, dead }) as const;
    store.step('a', 'b', 'c', 'd');
    const queue = [waiter('x:1', time - 5_000), waiter('y:1', time - 9_000), waiter('z:1', 0, true)];
    store.known.set('a', held('other:1', { queue, listeners: 3 }));
    store.known.set('b', held('other:1', { kind: 'fair', queue, listeners: 3, fencingToken: undefined }));
    const [holder] = held('other:2').holders;
    const unknown = {
      owner: 'other:2',
      mode: 'exclusive',
      remainingTime: Infinity,
      since: undefined,
    } as const;
    store.known.set('c', held('', { holders: [unknown] }));
    store.known.set(
      'd',
      held('', { holders: holder === undefined ? [] : [{ ...holder, since: time + 60_000 }] }),
    );
    const { locks: found } = await locks.list();
    const [a, b, c, d] = found;
    expect(a).toMatchObject({
      kind: 'lock',
      waiting: 5,
      holders: [{ label: 'other:1', fencingToken: 7 }],
    });
    expect(a?.holders[0]?.since).toBeGreaterThanOrEqual(500);
    expect(a?.holders[0]?.remaining).toBeGreaterThan(0);
    expect(a?.holders[0]?.remaining).toBeLessThanOrEqual(1_000);
    expect(a?.longestWait).toBeGreaterThanOrEqual(9_000);
    expect(a?.longestWait).toBeLessThan(60_000);
    expect(b).toMatchObject({ kind: 'fair', waiting: 2, holders: [{ fencingToken: 0 }] });
    expect(c?.holders).toEqual([{ label: 'other:2', since: NaN, remaining: Infinity, fencingToken: 7 }]);
    // The clock of the store is ahead.
    expect(d?.holders[0]?.since).toBe(0);
    expect(d?.longestWait).toBeNull();
  });

  it('says of a store without a listing that it has none', async () => {
    const bare = new Proxy<LockStore>(store, {
      get: (target, member) => {
        if (member === 'listing') return undefined;
        const value: unknown = Reflect.get(target, member);
        return typeof value === 'function' ? (value.bind(target) as unknown) : value;
      },
    });
    const service = new LockService({ store: bare });
    await expect(service.list()).rejects.toMatchObject({ code: 'LOCK_CONFIG', option: 'store' });
    await service.close();
  });
});

describe('inspect', () => {
  const time = Date.now() - 60_000;
  const waiter = (owner: string, since: number, dead = false) =>
    ({ owner, mode: 'exclusive', since, dead }) as const;

  it('is null where no owner holds the lock and no process that lives waits for it', async () => {
    expect(await locks.inspect('a')).toBeNull();
    store.known.set('a', held('', { holders: [], queue: [waiter('dead:1', time, true)], listeners: 2 }));
    expect(await locks.inspect('a')).toBeNull();
  });
});
