import { LockConfigError } from '../../api/errors.js';
import type { ListedName, StoreListing } from '../../store/lock-store.js';
import { type Answers, gather, valuesOf } from './ballot.js';
import { noMajority } from './outcomes.js';
import type { Quorum } from './quorum.js';

type Names = readonly ListedName[];

/** Lists all locks in one step: the names on so many members that any majority includes one of them. */
export const quorumListing = (quorum: Quorum): StoreListing => ({
  async names({ prefix, cursor }) {
    if (cursor !== undefined)
      throw new LockConfigError('cursor', 'must be the cursor of a page before', { value: cursor });
    const isEnough = (lists: Answers<Names>) =>
      valuesOf(lists).length > quorum.members.length - quorum.needed;
    const lists = await gather(
      quorum,
      ({ store }) => allNames(store.listing, prefix),
      (told) => (isEnough(told) ? 'decided' : 'open'),
    );
    if (!isEnough(lists)) throw noMajority(quorum, undefined, lists, 'refused');
    return { names: valuesOf(lists).flat(), cursor: undefined };
  },
});

async function allNames(listing: StoreListing, prefix: string): Promise<Names> {
  const names: ListedName[] = [];
  let cursor: string | undefined;
  do {
    const page = await listing.names({ prefix, cursor });
    names.push(...page.names);
    ({ cursor } = page);
  } while (cursor !== undefined);
  return names;
}
