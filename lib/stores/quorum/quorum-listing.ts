import { isLockUnavailableError, LockConfigError, type NodeOutcome } from '../../lock.errors.js';
import type { ListedName, NamesReply, StoreListing } from '../../port/lock-store.js';
import { noMajority } from './majority-acquisition.js';
import { type Member, quorumOf } from './member.js';
import { isTimeout, type Presence } from './presence.js';

interface Context {
  readonly members: readonly Member[];
  readonly presence: Presence;
}

/** Which member is asked next, from where on, and which members have told all of their names. */
interface Position {
  readonly index: number;
  readonly told: readonly number[];
  readonly at: string | undefined;
}

/**
 * Names the locks of a quorum, one member after the other. Whether a majority has a lock is found out when it is inspected. A
 * member that is absent is passed over, as long as the others have all locks that a majority can have.
 */
export function quorumListing({ members, presence }: Context): StoreListing {
  const spare = quorumOf(members.length) - 1;
  return {
    async names({ prefix, cursor }) {
      let { index, told, at } = positionOf(cursor, members.length);
      const errors = new Map<number, unknown>();
      for (; index < members.length; index++, at = undefined) {
        const asking = index;
        const asked = presence.observe(index, namesOf(members[index], prefix, at)).catch((error: unknown) => {
          if (!isLockUnavailableError(error)) throw error;
          errors.set(asking, error);
          return undefined;
        });
        // Where none can be spared any more, a slow member is waited for.
        const reply = await (index - told.length < spare ? presence.unlessAbsent(index, asked) : asked);
        if (reply === undefined) continue;
        const names: ListedName[] = [];
        const known = await Promise.all(reply.names.map(({ name }) => isNamedBy(told, name)));
        for (const [n, listed] of reply.names.entries()) if (known[n] === false) names.push(listed);
        if (reply.cursor !== undefined) return { names, cursor: cursorOf({ index, told, at: reply.cursor }) };
        told = [...told, index];
        const isLast = index + 1 === members.length;
        if (!isLast) return { names, cursor: cursorOf({ index: index + 1, told, at: undefined }) };
        if (told.length + spare >= members.length) return { names, cursor: undefined };
      }
      if (told.length + spare >= members.length) return { names: [], cursor: undefined };
      const outcomes = members.map((member, n) =>
        told.includes(n)
          ? ({ node: member.node, outcome: 'granted' } as const)
          : silenceOf(member, errors.get(n)),
      );
      throw noMajority(undefined, outcomes, { effect: 'refused' });
    },
  };

  /**
   * Whether one of these members has named it already. One that is absent now may have: then it is named twice. One that was
   * passed over has named nothing, even if it is back.
   */
  async function isNamedBy(told: readonly number[], name: string): Promise<boolean> {
    const named = told.map(async (index) => {
      const member = members[index];
      if (member === undefined || presence.isAbsent(index)) return false;
      const asked = presence.observe(index, member.store.inspect(name)).catch(() => null);
      return ((await presence.unlessAbsent(index, asked)) ?? null) !== null;
    });
    return (await Promise.all(named)).includes(true);
  }
}

async function namesOf(
  member: Member | undefined,
  prefix: string,
  cursor: string | undefined,
): Promise<NamesReply | undefined> {
  return await member?.store.listing?.names({ prefix, cursor });
}

/** Why a member has told nothing. One that is down may have been asked for an earlier page only. */
function silenceOf(member: Member, said: unknown): NodeOutcome {
  const { node } = member;
  const error = said ?? (member.isDown ? member.outage('') : undefined);
  if (error === undefined) return { node, outcome: 'timeout' };
  return { node, outcome: isTimeout(error) ? 'timeout' : 'error', error };
}

const cursorOf = ({ index, told, at = '' }: Position): string => `${String(index)} ${told.join(',')} ${at}`;

/** @throws LockConfigError for the cursor of another store */
function positionOf(cursor: string | undefined, members: number): Position {
  if (cursor === undefined) return { index: 0, told: [], at: undefined };
  const [, first, second, at] = /^(\d+) ((?:\d+(?:,\d+)*)?) (.*)$/.exec(cursor) ?? [];
  const index = Number(first);
  const told = second === undefined || second === '' ? [] : second.split(',').map(Number);
  if (index < members && told.every((member, n) => member < (told[n + 1] ?? index)))
    return { index, told, at: at === '' ? undefined : at };
  throw new LockConfigError('cursor', 'must be the cursor of a page before', { value: cursor });
}
