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
  /** Counts on in a second turn, for the members that have told nothing in the first. */
  readonly index: number;
  readonly told: readonly number[];
  readonly at: string | undefined;
}

/**
 * Names the locks of a quorum, one member after the other. Whether a majority has a lock is found out when it is inspected. A
 * member that is absent is passed over, as long as the others have all locks that a majority can have. Where too few others
 * have told theirs in the end, it is asked again: it may only have been slow, as while its connection was being made.
 */
export function quorumListing({ members, presence }: Context): StoreListing {
  const spare = quorumOf(members.length) - 1;
  const isEnough = (told: readonly number[]) => told.length + spare >= members.length;
  return {
    async names({ prefix, cursor }) {
      let { index, told, at } = positionOf(cursor, members.length);
      const errors = new Map<number, unknown>();
      const ask = (n: number, from: string | undefined) =>
        presence.observe(n, namesOf(members[n], prefix, from)).catch((error: unknown) => {
          if (!isLockUnavailableError(error)) throw error;
          errors.set(n, error);
          return undefined;
        });
      let again: ReadonlyMap<number, ReturnType<typeof ask>> | undefined;
      /** All that are left are asked at the same time: each may be as slow as a command may be. */
      const askAgain = (n: number, from: string | undefined) => {
        const left = [...members.keys()].filter((one) => !told.includes(one) && !errors.has(one));
        again ??= new Map(left.map((one) => [one, ask(one, one === n ? from : undefined)]));
        // The first that fails of those ends the listing, and the others have no receiver then.
        for (const asked of again.values()) asked.catch(() => undefined);
        return again.get(n) ?? ask(n, from);
      };
      for (; index < 2 * members.length; index++, at = undefined) {
        const isSecond = index >= members.length;
        if (isSecond && isEnough(told)) break;
        const n = index % members.length;
        if (told.includes(n) || errors.has(n)) continue;
        const asked = isSecond ? askAgain(n, at) : ask(n, at);
        // Where none can be spared any more, a slow member is waited for.
        const isSpared = !isSecond && index - told.length < spare;
        const reply = await (isSpared ? presence.unlessAbsent(n, asked) : asked);
        if (reply === undefined) continue;
        const names: ListedName[] = [];
        const known = await Promise.all(reply.names.map(({ name }) => isNamedBy(told, name)));
        for (const [one, listed] of reply.names.entries()) if (known[one] === false) names.push(listed);
        if (reply.cursor !== undefined) return { names, cursor: cursorOf({ index, told, at: reply.cursor }) };
        told = [...told, n];
        const next = index + 1;
        if (next >= members.length && isEnough(told)) return { names, cursor: undefined };
        const isHopeless = told.length + errors.size === members.length;
        if (next < members.length || (next < 2 * members.length && !isHopeless))
          return { names, cursor: cursorOf({ index: next, told, at: undefined }) };
      }
      if (isEnough(told)) return { names: [], cursor: undefined };
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
  const isOfTurn = told.every((member) => member < Math.min(index, members) && member !== index % members);
  if (index < 2 * members && isOfTurn && new Set(told).size === told.length)
    return { index, told, at: at === '' ? undefined : at };
  throw new LockConfigError('cursor', 'must be the cursor of a page before', { value: cursor });
}
