import type { NodeOutcome } from '../../api/errors.js';
import type { LockStore } from '../../store/lock-store.js';
import { decide, type NodeAnswer, tally } from './ballot.js';
import { noMajority } from './majority-acquisition.js';
import type { Member } from './member.js';
import { mismatchAmong } from './not-held.js';
import { isTimeout } from './presence.js';
import type { Quorum } from './quorum.js';

/** The answers of the members by index; undefined for a member without an answer. */
export type Cast<A> = readonly (NodeAnswer<A> | undefined)[];

/**
 * Waits for all asked members. After the answer of a majority, it waits only for members that are not silent.
 * @param isAsked selects the members to ask, at least one
 * @param needed number of these members that must answer
 * @throws LockUnavailableError if fewer members answer
 */
export async function askMembers<A>(
  { members, presence, needed: majority }: Quorum,
  name: string | undefined,
  ask: (store: LockStore) => Promise<A>,
  isAsked: (index: number) => boolean = () => true,
  needed = majority,
): Promise<Cast<A>> {
  const unasked = new Promise<never>(() => undefined);
  const answers = members.map(({ store }, index) =>
    isAsked(index) ? presence.observe(index, ask(store)) : unasked,
  );
  const all = (cast: Cast<A>) =>
    cast.every((answer, index) => answer !== undefined || !isAsked(index)) ? cast : undefined;
  const without = (cast: Cast<A>) => (tally(cast) >= needed ? cast : undefined);
  const cast = await decide(answers, all, { presence, without });
  if (tally(cast) >= needed) return cast;
  throw mismatchAmong(cast) ?? noMajority(name, outcomesOf(members, cast), { effect: 'unknown' });
}

/** The details of each member for an error. */
export function outcomesOf(members: readonly Member[], cast: Cast<unknown>): NodeOutcome[] {
  return members.map(({ node }, index) => {
    const answer = cast[index];
    if (answer === undefined) return { node, outcome: 'timeout' };
    // Answers of a member that does not hold the lock for the owner.
    const refused = 'value' in answer && ['taken', 'deleted'].includes(answer.value as string);
    if ('value' in answer) return { node, outcome: refused ? 'taken' : 'granted' };
    return { node, outcome: isTimeout(answer.error) ? 'timeout' : 'error', error: answer.error };
  });
}
