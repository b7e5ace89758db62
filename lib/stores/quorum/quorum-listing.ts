import { isLockUnavailableError, LockConfigError } from '../../lock.errors.js';
import type { ListedName, NamesReply, StoreListing } from '../../port/lock-store.js';
import { noMajority } from './majority-acquisition.js';
import { type Member, quorumOf } from './member.js';

/** Which member is asked next, from where on, and how many have told all of their names. */
interface Position {
  readonly index: number;
  readonly told: number;
  readonly at: string | undefined;
}

/**
 * Names the locks of a quorum, one member after the other. Whether a majority has a lock is found out when it is inspected. A
 * member that does not answer is passed over, as long as the others have all locks that a majority can have.
 */
export function quorumListing(members: readonly Member[]): StoreListing {
  const needed = members.length - quorumOf(members.length) + 1;
  return {
    async names({ prefix, cursor }) {
      let { index, told, at } = positionOf(cursor, members.length);
      for (; index < members.length; index++, at = undefined) {
        const reply = await namesOf(members[index], prefix, at);
        if (reply === undefined) continue;
        const before = members.slice(0, index);
        const known = await Promise.all(reply.names.map((listed) => isNamedBy(before, listed)));
        const names = reply.names.filter((_, n) => known[n] === false);
        if (reply.cursor !== undefined) return { names, cursor: cursorOf({ index, told, at: reply.cursor }) };
        told++;
        const isLast = index + 1 === members.length;
        if (!isLast) return { names, cursor: cursorOf({ index: index + 1, told, at: undefined }) };
        if (told >= needed) return { names, cursor: undefined };
      }
      if (told >= needed) return { names: [], cursor: undefined };
      const outcomes = members.map(
        ({ node, isDown }) => ({ node, outcome: isDown ? 'error' : 'timeout' }) as const,
      );
      throw noMajority(undefined, outcomes, { effect: 'refused' });
    },
  };
}

/** Undefined for a member that does not answer. */
async function namesOf(
  member: Member | undefined,
  prefix: string,
  cursor: string | undefined,
): Promise<NamesReply | undefined> {
  try {
    return await member?.store.listing?.names({ prefix, cursor });
  } catch (error) {
    if (isLockUnavailableError(error)) return undefined;
    throw error;
  }
}

/** Whether another member has named it already. */
async function isNamedBy(members: readonly Member[], { name }: ListedName): Promise<boolean> {
  const found = await Promise.all(members.map(({ store }) => store.inspect(name).catch(() => null)));
  return found.some((stored) => stored !== null);
}

const cursorOf = ({ index, told, at = '' }: Position): string => `${String(index)} ${String(told)} ${at}`;

/** @throws LockConfigError for the cursor of another store */
function positionOf(cursor: string | undefined, members: number): Position {
  if (cursor === undefined) return { index: 0, told: 0, at: undefined };
  const [, first, second, at] = /^(\d+) (\d+) (.*)$/.exec(cursor) ?? [];
  const [index, told] = [Number(first), Number(second)];
  if (index < members && told <= index) return { index, told, at: at === '' ? undefined : at };
  throw new LockConfigError('cursor', 'must be the cursor of a page before', { value: cursor });
}
