import { LockConfigError, type NodeOutcome } from '../../api/errors.js';
import { isLockUnavailableError } from '../../api/error-guards.js';
import type { NamesReply, StoreListing } from '../../store/lock-store.js';
import { noMajority } from './majority-acquisition.js';
import type { Member } from './member.js';
import { isTimeout } from './presence.js';
import type { Quorum } from './quorum.js';

/** A member that has listed all of its names. */
interface Told {
  readonly index: number;
  /** The begin of its list, by its own clock, ms. */
  readonly begun: number;
}

/** The progress of a listing. */
interface Position {
  readonly told: readonly Told[];
  /** The member that has listed a part of its names, and its cursor. */
  readonly reading: { readonly index: number; readonly at: string } | undefined;
}

interface Answer {
  readonly index: number;
  readonly reply: NamesReply;
}

/**
 * Lists the locks of a quorum, one member after the other, until so many have listed theirs that any majority includes
 * one of them. The inspection of a lock shows whether a majority has it.
 */
export function quorumListing({ members, presence, needed: majority }: Quorum): StoreListing {
  const needed = members.length - majority + 1;
  return {
    async names({ prefix, cursor }) {
      const { told, reading } = positionOf(cursor, members.length);
      if (told.length >= needed) return { names: [], cursor: undefined };
      const errors = new Map<number, unknown>();
      const ask = async (index: number): Promise<Answer | undefined> => {
        const at = index === reading?.index ? reading.at : undefined;
        try {
          const reply = await presence.observe(index, namesOf(members[index], prefix, at));
          return reply && { index, reply };
        } catch (error) {
          if (!isLockUnavailableError(error)) throw error;
          errors.set(index, error);
          return undefined;
        }
      };
      const answer = await firstAnswer(inOrder(told, reading?.index), ask);
      if (answer === undefined) throw noMajority(undefined, outcomesOf(told, errors), { effect: 'refused' });
      const { index, reply } = answer;
      const known = await Promise.all(reply.names.map(({ name }) => isNamedBy(told, name)));
      const names = reply.names.filter((_, n) => known[n] === false);
      const step = cursorOf({ told, reading: { index, at: reply.step ?? '' } });
      if (reply.cursor !== undefined)
        return { names, step, cursor: cursorOf({ told, reading: { index, at: reply.cursor } }) };
      const nowTold = [...told, { index, begun: reply.begun ?? 0 }];
      if (nowTold.length >= needed) return { names, step, cursor: undefined };
      return { names, step, cursor: cursorOf({ told: nowTold, reading: undefined }) };
    },
  };

  /** The members with names left: first the one in progress, last the absent ones. */
  function inOrder(told: readonly Told[], reading: number | undefined): number[] {
    const left = [...members.keys()].filter((index) => index !== reading && !isTold(told, index));
    const present = left.filter((index) => !presence.isAbsent(index));
    const absent = left.filter((index) => presence.isAbsent(index));
    return [...(reading === undefined ? [] : [reading]), ...present, ...absent];
  }

  /**
   * Passes over a member that becomes absent before its answer. If no other member answers, it waits for that member,
   * which may only be slow, as during a reconnection.
   */
  async function firstAnswer(
    order: readonly number[],
    ask: (index: number) => Promise<Answer | undefined>,
  ): Promise<Answer | undefined> {
    const asked: Promise<Answer | undefined>[] = [];
    for (const index of order) {
      const asking = ask(index);
      asked.push(asking);
      const answer = await presence.unlessAbsent(index, asking);
      if (answer !== undefined) return answer;
    }
    for (const asking of asked) {
      const answer = await asking;
      if (answer !== undefined) return answer;
    }
    return undefined;
  }

  /**
   * Whether one of these members has listed the lock already, because it has held it since before its list. A member
   * that got the lock later, for instance after a restart, has not. An absent member may have, and then the lock is
   * listed twice.
   */
  async function isNamedBy(told: readonly Told[], name: string): Promise<boolean> {
    const named = told.map(async ({ index, begun }) => {
      const member = members[index];
      if (member === undefined || presence.isAbsent(index)) return false;
      const asked = presence.observe(index, member.store.inspect(name)).catch(() => null);
      const stored = await presence.unlessAbsent(index, asked);
      return stored?.holders.some(({ since = Infinity }) => since < begun) ?? false;
    });
    return (await Promise.all(named)).includes(true);
  }

  function outcomesOf(told: readonly Told[], errors: ReadonlyMap<number, unknown>): NodeOutcome[] {
    return members.map(({ node }, index) => {
      if (isTold(told, index)) return { node, outcome: 'granted' };
      const error = errors.get(index);
      return { node, outcome: isTimeout(error) ? 'timeout' : 'error', error };
    });
  }
}

async function namesOf(
  member: Member | undefined,
  prefix: string,
  cursor: string | undefined,
): Promise<NamesReply | undefined> {
  return await member?.store.listing?.names({ prefix, cursor });
}

const isTold = (told: readonly Told[], member: number): boolean => told.some(({ index }) => index === member);

const cursorOf = ({ told, reading }: Position): string =>
  told.map(({ index, begun }) => `${String(index)}@${String(begun)}`).join(',') +
  (reading === undefined ? '' : `/${String(reading.index)}/${reading.at}`);

/** @throws LockConfigError for the cursor of another store */
function positionOf(cursor: string | undefined, members: number): Position {
  if (cursor === undefined) return { told: [], reading: undefined };
  const [whole, list = '', index, at] =
    /^((?:\d+@\d{1,15}(?:,\d+@\d{1,15})*)?)(?:\/(\d+)\/(.+))?$/.exec(cursor) ?? [];
  const told = (list === '' ? [] : list.split(',')).map((member) => {
    const [index = NaN, begun = NaN] = member.split('@').map(Number);
    return { index, begun };
  });
  const reading = at === undefined ? undefined : { index: Number(index), at };
  const all = [...told, ...(reading === undefined ? [] : [reading])].map(({ index }) => index);
  const isOfMembers = all.every((member) => member < members) && new Set(all).size === all.length;
  if (whole !== undefined && all.length > 0 && isOfMembers) return { told, reading };
  throw new LockConfigError('cursor', 'must be the cursor of a page before', { value: cursor });
}
