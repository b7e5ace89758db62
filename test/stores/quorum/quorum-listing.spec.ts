import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { LockConfigError, LockUnavailableError } from '../../../lib/index.js';
import type { NamesReply, StoredLock } from '../../../lib/store/lock-store.js';
import type { Member } from '../../../lib/stores/quorum/member.js';
import { Quorum } from '../../../lib/stores/quorum/quorum.js';
import { quorumListing } from '../../../lib/stores/quorum/quorum-listing.js';

/** Held since before the nodes tell their names. */
const HELD = { holders: [{ since: 1 }] } as unknown as StoredLock;
const BEGUN = 2;

const AWAY = new LockUnavailableError('a', { cause: new Error('out of reach') });

/** A node that names locks, a page at a time, and can be out of reach while it is asked for names. */
const member = (names: readonly (readonly string[])[], isAway = false) => ({
  node: 'node',
  isDown: false,
  store: {
    listing: {
      names: ({ cursor = '0' }: { cursor?: string | undefined }): Promise<NamesReply> => {
        if (isAway) return Promise.reject(AWAY);
        const page = Number(cursor);
        const next = page + 1 < names.length ? String(page + 1) : undefined;
        const listed = (names[page] ?? []).map((name) => ({ name, key: name }));
        return Promise.resolve({ names: listed, cursor: next, begun: BEGUN } as unknown as NamesReply);
      },
    },
    inspect: (name: string) => Promise.resolve(names.flat().includes(name) ? HELD : null),
  },
});

const asQuorum = (members: readonly object[]) => new Quorum(members as readonly Member[], 30_000);

const listingOf = (...members: readonly ReturnType<typeof member>[]) => quorumListing(asQuorum(members));

/** The names of all pages. */
async function all(listing: ReturnType<typeof quorumListing>): Promise<string[]> {
  const found: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await listing.names({ prefix: '', cursor });
    found.push(...page.names.map(({ name }) => name));
    ({ cursor } = page);
  } while (cursor !== undefined);
  return found;
}

describe('The names of the locks of a quorum', () => {
  const pages = [['a', 'b'], ['c']];

  it('are told once, whichever nodes have them', async () => {
    expect(await all(listingOf(member(pages), member([['c', 'd']]), member(pages)))).toEqual([
      'a',
      'b',
      'c',
      'd',
    ]);
  });

  it('are asked of so many nodes as have one of any majority, and of no more', async () => {
    const asked: number[] = [];
    const members = [0, 1, 2, 3, 4].map((index) => {
      const one = member(pages);
      const { names } = one.store.listing;
      one.store.listing.names = (request) => {
        asked.push(index);
        return names(request);
      };
      return one;
    });
    expect(await all(listingOf(...members))).toEqual(['a', 'b', 'c']);
    expect([...new Set(asked)]).toEqual([0, 1, 2]);
  });

  it.each([0, 1, 2])(
    'are all told where node %d was passed over, and answers again at once',
    async (away) => {
      const members = [0, 1, 2].map((index) => member(pages, index === away));
      expect(await all(listingOf(...members))).toEqual(['a', 'b', 'c']);
    },
  );

  it.each([
    ['where a node does not answer', false],
    ['by a node that was slow where no other one answers', true],
  ])('are told %s', async (_, isNeeded) => {
    const slow = member([['a']]);
    const { names } = slow.store.listing;
    const others = [member([['b']], isNeeded), member([['b']], isNeeded)];
    // After the patience with it.
    slow.store.listing.names = async (request) => {
      await sleep(isNeeded ? 300 : 60_000, undefined, { ref: false });
      return await names(request);
    };
    const reply = await listingOf(slow, ...others).names({ prefix: '', cursor: undefined });
    expect(reply.names.map(({ name }) => name)).toEqual([isNeeded ? 'a' : 'b']);
  });

  it('are told by a node behind one that has got the lock after it told its names', async () => {
    const late = member([[]]);
    late.store.inspect = () => Promise.resolve({ holders: [{ since: BEGUN }] } as unknown as StoredLock);
    expect(await all(listingOf(late, member(pages), member(pages)))).toEqual(['a', 'b', 'c']);
  });

  it('are not told without a majority, and the error says why of each node', async () => {
    const listing = listingOf(member(pages), member(pages, true), { ...member([], true), isDown: true });
    const error: unknown = await all(listing).catch((reason: unknown) => reason);
    expect(error).toMatchObject({
      outcomes: [{}, { outcome: 'error', error: AWAY }, { outcome: 'error', error: AWAY }],
    });
  });

  it.each(['', '1', '1@2', '0,0@2', '0@x', '0@2,0@2', '3 0,1,2 ', '1 1 x', '2 1,0 x', '0 0 '])(
    'begin at no foreign cursor: %j',
    async (cursor) => {
      await expect(listingOf(member(pages)).names({ prefix: '', cursor })).rejects.toThrow(LockConfigError);
    },
  );
});
