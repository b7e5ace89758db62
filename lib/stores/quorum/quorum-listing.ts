import { LockConfigError } from '../../api/errors.js';
import { isLockUnavailableError } from '../../api/error-guards.js';
import type { NamesReply, StoreListing } from '../../store/lock-store.js';
import { type Answers, Ballot, gather, valueAt } from './ballot.js';
import { noMajority, outcomesOf } from './outcomes.js';
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
  const { members, presence } = quorum;
  const needed = members.length - quorum.needed + 1;

  /** Whether one of the members has listed the lock, because it has held it since before its list. */
  async function isNamedBy(told: readonly Told[], name: string): Promise<boolean> {
    const isAsked = (index: number) => !presence.isAbsent(index) && told.some(([other]) => other === index);
    const inspect = (index: number) => (isAsked(index) ? members[index]?.store.inspect(name) : undefined);
    const states = await gather(
      quorum,
      (_, index) => inspect(index),
      () => 'enough',
    );
    const sinceAt = (index: number) => valueAt(states, index)?.holders.map(({ since = Infinity }) => since);
    return told.some(([index, begun]) => sinceAt(index)?.some((since) => since < begun));
  }

  async function pageOf(told: readonly Told[], index: number, reply: NamesReply): Promise<NamesReply> {
    const isNamed = await Promise.all(reply.names.map(({ name }) => isNamedBy(told, name)));
    const names = reply.names.filter((_, n) => isNamed[n] === false);
    const step = cursorOf({ told, reading: [index, reply.step ?? ''] });
    if (reply.cursor !== undefined)
      return { names, step, cursor: cursorOf({ told, reading: [index, reply.cursor] }) };
    const nowTold: Told[] = [...told, [index, reply.begun ?? 0]];
    return { names, step, cursor: nowTold.length < needed ? cursorOf({ told: nowTold }) : undefined };
  }

  return {
    async names({ prefix, cursor }) {
      const { told, reading } = positionOf(cursor, members.length);
      if (told.length >= needed) return { names: [], cursor: undefined };
      const isLeft = (index: number) => index !== reading?.[0] && told.every(([other]) => other !== index);
      const left = [...members.keys()].filter(isLeft);
      // First the member in progress, last those that are absent.
      left.sort((a, b) => Number(presence.isAbsent(a)) - Number(presence.isAbsent(b)));
      if (reading !== undefined) left.unshift(reading[0]);
      const ballot = new Ballot<NamesReply>(quorum);
      const first = (answers: Answers<NamesReply>) =>
        answers.findIndex((answer) => answer && 'value' in answer);
      for (const index of left) {
        const at = index === reading?.[0] ? reading[1] : undefined;
        const { listing } = members[index]?.store ?? {};
        if (listing === undefined) continue;
        void ballot.enter(index, listing.names({ prefix, cursor: at }));
        // Goes on to the next member after the GRACE of one that does not answer, and at last waits for all.
        const isLast = index === left.at(-1);
        const answers = await ballot.until((cast) =>
          first(cast) >= 0 || (cast[index] !== undefined && !isLast) ? 'decided' : isLast ? 'open' : 'enough',
        );
        const answer = answers[index];
        if (answer !== undefined && 'error' in answer && !isLockUnavailableError(answer.error))
          throw answer.error;
        const teller = first(answers);
        const reply = valueAt(answers, teller);
        if (reply !== undefined) return await pageOf(told, teller, reply);
      }
      throw noMajority(undefined, outcomesOf(members, ballot.answers), 'refused');
    },
  };
}

const cursorOf = ({ told, reading }: Position): string =>
  told.map(([index, begun]) => `${String(index)}@${String(begun)}`).join(',') +
  (reading === undefined ? '' : `/${String(reading[0])}/${reading[1]}`);

/** @throws LockConfigError for the cursor of another store */
function positionOf(cursor: string | undefined, members: number): Position {
  if (cursor === undefined) return { told: [] };
  const [whole, list = '', index, at] =
    /^((?:\d+@\d{1,15}(?:,\d+@\d{1,15})*)?)(?:\/(\d+)\/(.+))?$/.exec(cursor) ?? [];
  const told = (list === '' ? [] : list.split(',')).map((member): Told => {
    const [teller = NaN, begun = NaN] = member.split('@').map(Number);
    return [teller, begun];
  });
  const reading = at === undefined ? undefined : ([Number(index), at] as const);
  const all = [...told, ...(reading === undefined ? [] : [reading])].map(([member]) => member);
  const isOfMembers = all.every((member) => member < members) && new Set(all).size === all.length;
  if (whole !== undefined && all.length > 0 && isOfMembers) return { told, reading };
  throw new LockConfigError('cursor', 'must be the cursor of a page before', { value: cursor });
}
