import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { LockConfigError, LockUnavailableError } from '../../../lib/index.js';
import type { NamesReply, NamesRequest } from '../../../lib/store/lock-store.js';
import type { Member } from '../../../lib/stores/quorum/member.js';
import { Quorum } from '../../../lib/stores/quorum/quorum.js';
import { quorumListing } from '../../../lib/stores/quorum/quorum-listing.js';

const AWAY = new LockUnavailableError('a', { cause: new Error('out of reach') });

type Names = (request: NamesRequest) => Promise<NamesReply>;

const member = (names: Names) => ({ node: 'node', isDown: false, store: { listing: { names } } });

/** A node that names locks, a page at a time. */
const naming = (...pages: readonly (readonly string[])[]): Names =>
  function names({ cursor = '0' }) {
    const page = Number(cursor);
    const next = page + 1 < pages.length ? String(page + 1) : undefined;
    const named = (pages[page] ?? []).map((name) => ({ name, isQueue: false }));
    return Promise.resolve({ names: named, cursor: next });
  };

const away: Names = () => Promise.reject(AWAY);

async function listed(...nodes: readonly Names[]): Promise<string[]> {
  const quorum = new Quorum(nodes.map(member) as unknown as readonly Member[], 30_000);
  const { names, cursor } = await quorumListing(quorum).names({ prefix: '', cursor: undefined });
  expect(cursor).toBeUndefined();
  return [...new Set(names.map(({ name }) => name))].sort();
}

describe('The names of the locks of a quorum', () => {
  it('are those of all pages, whichever nodes have them', async () => {
    expect(await listed(naming(['a', 'b'], ['c']), naming(['c', 'd']), away)).toEqual(['a', 'b', 'c', 'd']);
  });

  it('are told by so many nodes as have one of any majority, the others aside', async () => {
    const silent: Names = () => new Promise(() => undefined);
    expect(await listed(silent, naming(['a']), naming(['b']))).toEqual(['a', 'b']);
    expect(await listed(silent, away, naming(['a']), naming(['b']), naming(['c']))).toEqual(['a', 'b', 'c']);
  });

  it('wait for a node that is late if too few others answer', async () => {
    const late: Names = async (request) => {
      await sleep(300);
      return await naming(['a'])(request);
    };
    expect(await listed(late, naming(['b']), away)).toEqual(['a', 'b']);
  });

  it('are not told without so many nodes, and the error says why of each node', async () => {
    await expect(listed(naming(['a']), away, away)).rejects.toMatchObject({
      outcomes: [{}, { outcome: 'error', error: AWAY }, { outcome: 'error', error: AWAY }],
    });
  });

  it('begin at no cursor of another store', async () => {
    const quorum = new Quorum([member(naming(['a']))] as unknown as readonly Member[], 30_000);
    await expect(quorumListing(quorum).names({ prefix: '', cursor: '7' })).rejects.toThrow(LockConfigError);
  });
});
