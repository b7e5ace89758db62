import { LockConfigError } from '../../api/errors.js';
import { isLockUnavailableError } from '../../api/error-guards.js';
import type { NamesReply, StoreListing } from '../../store/lock-store.js';
import { Ballot, gather, valueAt } from './ballot.js';
import type { Member } from './member.js';
import { noMajority } from './outcomes.js';
import type { Quorum } from './quorum.js';

/** A member that has listed all of its names, and the begin of its list by its own clock, ms. */
type Told = readonly [index: number, begun: number];

/** The progress of a listing. */
interface Position {
  readonly told: readonly Told[];
  /** The member that has listed a part of its names, and its cursor. */
  readonly reading?: readonly [index: number, at: string] | undefined;
}

/**
 * Lists the locks of a quorum, one member after the other, until so many have listed theirs that any majority includes
 * one of them. The inspection of a lock shows whether a majority has it.
 */
export function quorumListing(quorum: Quorum): StoreListing {
  const { members } = quorum;
  const needed = members.length - quorum.needed + 1;

  /** Whether one of the members has listed the lock, because it has held it since before its list. */
  async function isNamedBy(told: readonly Told[], name: string): Promise<boolean> {
    const isAsked = (index: number) => !quorum.isAbsent(index) && told.some(([other]) => other === index);
    const ask = ({ store }: Member, index: number) => (isAsked(index) ? store.inspect(name) : undefined);
    const states = await gather(quorum, ask, () => 'enough');
    return told.some(([index, begun]) =>
      valueAt(states, index)?.holders.some(({ since = Infinity }) => since < begun),
    );
  }

  async function pageOf(told: readonly Told[], index: number, reply: NamesReply): Promise<NamesReply> {
    const isNamed = await Promise.all(reply.names.map(({ name }) => isNamedBy(told, name)));
    const names = reply.names.filter((_, n) => isNamed[n] === false);
    const nowTold: Told[] = [...told, [index, reply.begun ?? 0]];
    const rest = nowTold.length < needed ? cursorOf({ told: nowTold }) : undefined;
    const at = (cursor: string) => cursorOf({ told, reading: [index, cursor] });
    return {
      names,
      step: at(reply.step ?? ''),
      cursor: reply.cursor === undefined ? rest : at(reply.cursor),
    };
  }

  return {
    async names({ prefix, cursor }) {
      const { told, reading } = positionOf(cursor, quorum);
      if (told.length >= needed) return { names: [], cursor: undefined };
      const left = [...members.keys()].filter((index) => told.every(([other]) => other !== index));
      // First the member in progress, last those that are absent.
      const rank = (index: number) => (index === reading?.[0] ? -1 : Number(quorum.isAbsent(index)));
      left.sort((a, b) => rank(a) - rank(b));
      const ballot = new Ballot<NamesReply>(quorum);
      const teller = () => ballot.answers.findIndex((answer) => answer !== undefined && 'value' in answer);
      for (const index of left) {
        const at = index === reading?.[0] ? reading[1] : undefined;
        const asked = members[index]?.store.listing.names({ prefix, cursor: at });
        if (asked !== undefined) void ballot.enter(index, asked);
        // Goes on to the next member after the GRACE of one that does not answer, and at last waits for all.
        const isLast = index === left.at(-1);
        await ballot.until((cast) => {
          if (teller() >= 0) return 'decided';
          return isLast ? 'open' : cast[index] === undefined ? 'enough' : 'decided';
        });
        const answer = ballot.answers[index];
        if (answer !== undefined && 'error' in answer && !isLockUnavailableError(answer.error))
          throw answer.error;
        const reply = valueAt(ballot.answers, teller());
        if (reply !== undefined) return await pageOf(told, teller(), reply);
      }
      throw noMajority(quorum, undefined, ballot.answers, 'refused');
    },
  };
}

const cursorOf = (position: Position): string => JSON.stringify(position);

/** @throws LockConfigError for the cursor of another store */
function positionOf(cursor: string | undefined, { members }: Quorum): Position {
  if (cursor === undefined) return { told: [] };
  try {
    const { told, reading } = JSON.parse(cursor) as Position;
    const named = [...told, ...(reading === undefined ? [] : [reading])].map(([index]) => index);
    const isOfMembers = named.every((index) => [...members.keys()].includes(index));
    if (named.length > 0 && isOfMembers && new Set(named).size === named.length) return { told, reading };
  } catch {
    // The cursor is no JSON of a position.
  }
  throw new LockConfigError('cursor', 'must be the cursor of a page before', { value: cursor });
}
