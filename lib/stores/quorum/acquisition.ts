import { setTimeout as sleep } from 'node:timers/promises';
import {
  isLockKindMismatchError,
  isLockUnavailableError,
  LockUnavailableError,
  type NodeOutcome,
} from '../../lock.errors.js';
import type { AcquireAllReply, AcquireAllRequest, LockStore } from '../lock-store.js';
import { count, decide, outcomeOf, tally, type Vote } from './ballot.js';
import type { Electorate } from './electorate.js';
import type { Holding } from './holdings.js';
import { type Member, quorumOf } from './member.js';

type Grant = Extract<AcquireAllReply, { granted: true }>;
type Refusal = Extract<AcquireAllReply, { granted: false }>;

/** After a split vote everybody retreats for a time of their own, up to so many ms. */
const RETREAT = 50;
/** How long an attempt that has failed waits for the other answers, so as to report them, ms. */
const LAST_WORD = 50;
/** When a lock is looked at again of which no majority knows a holder, ms at the latest. */
const SPLIT_POLL = 500;

/** One attempt of one owner: granted by a majority, or taken back from all. */
export class Acquisition {
  /** The members that certainly hold nothing for the owner. */
  private readonly free = new Set<number>();
  private readonly needed: number;

  constructor(
    private readonly members: readonly Member[],
    private readonly electorate: Electorate,
    private readonly request: AcquireAllRequest,
    private readonly holding: Holding,
    /** Asks one member for the locks. */
    private readonly ask: (store: LockStore, leastToken: number | undefined) => Promise<AcquireAllReply>,
    /** Sees to it that one member lets go. */
    private readonly giveUp: (index: number, insist: boolean) => void,
  ) {
    this.needed = quorumOf(members.length);
  }

  /**
   * @throws LockUnavailableError with each node's answer when there are too few
   * @throws LockKindMismatchError when a node holds something else under the name
   */
  async run(): Promise<AcquireAllReply> {
    const votes = this.members.map((member, index) => this.poll(member, index));
    const result = await decide(votes, count);
    if (result.outcome === 'granted') {
      const fencingTokens = await this.agree(result.grants);
      if (fencingTokens !== undefined) return { granted: true, fencingTokens };
    }
    this.takeBack(votes);
    if (result.outcome === 'taken') return await this.refuse(result.refusals, result.grants);
    throw await this.failure(votes);
  }

  private async poll(member: Member, index: number): Promise<Vote<Grant, Refusal>> {
    const { epoch, store } = member;
    // Asked at the same time, and over the same connection: it is one server that answers both.
    try {
      const asked = this.ask(store, this.request.leastToken);
      const admitted = this.electorate.mayVote(index);
      const reply = await asked;
      this.holding.unsure.delete(index);
      if (!reply.granted) {
        this.free.add(index);
        return { outcome: 'taken', refusal: reply };
      }
      const counts = await admitted;
      return counts && member.epoch === epoch
        ? { outcome: 'granted', grant: reply }
        : { outcome: 'quarantined' };
    } catch (error) {
      if (isLockUnavailableError(error) && error.effect === 'refused') {
        this.holding.unsure.delete(index);
        this.free.add(index);
      }
      return { outcome: isTimeout(error) ? 'timeout' : 'error', error };
    }
  }

  /**
   * The tokens are the greatest that were given. The next majority has one of these members in common, which then gives
   * a greater one: it has been told this one with the release, or the lease has run out, and its clock has gone on by
   * that much. Only a member whose clock is further behind has to be told at once.
   * @returns undefined when too few could be told
   */
  private async agree(grants: ReadonlyMap<number, Grant>): Promise<readonly number[] | undefined> {
    const { names, leaseTime } = this.request;
    const all = [...grants.values()];
    const tokens = names.map((_, n) => Math.max(...all.map(({ fencingTokens }) => fencingTokens[n] ?? 0)));
    const margin = (leaseTime * 1_000) / 2;
    const behind = [...grants].filter(([, { fencingTokens }]) =>
      fencingTokens.some((token, n) => token < (tokens[n] ?? 0) - margin),
    );
    // What has been given up is not to be asked for again.
    if (behind.length === 0 || this.holding.released.size > 0) return tokens;
    const told = behind.map(async ([index]) => {
      const member = this.members[index];
      return member !== undefined && (await this.ask(member.store, Math.max(...tokens))).granted;
    });
    const enough = this.needed - (grants.size - behind.length);
    const agreed = await decide(told, (cast) => {
      if (tally(cast, (granted) => granted) >= enough) return { enough: true };
      return cast.includes(undefined) ? undefined : { enough: false };
    });
    return agreed.enough ? tokens : undefined;
  }

  /** Sent at once, behind the requests that are still under way. */
  private takeBack(votes: readonly Promise<unknown>[]): void {
    votes.forEach((vote, index) => {
      if (this.free.has(index)) return;
      this.giveUp(index, false);
      void vote.then(() => {
        if (this.holding.unsure.has(index)) this.giveUp(index, true);
      });
    });
  }

  private async refuse(refusals: readonly Refusal[], grants: number): Promise<Refusal> {
    const holders = refusals.map(({ holder }) => holder);
    const holder = mostFrequent(holders);
    const unknown = this.members.length - refusals.length - grants;
    const split = holders.filter((one) => one === holder).length + unknown < this.needed;
    // Everybody who has got a part of it gives that up, and would meet the others again at the next attempt.
    if (split) await sleep(Math.random() * RETREAT);
    // So many of them have to end until a majority is free.
    const ends = refusals.map(({ retryAfter }) => retryAfter).sort((a, b) => a - b);
    const end = ends[this.needed - grants - 1] ?? ends.at(-1) ?? 0;
    const name = refusals[0]?.name ?? this.request.names[0] ?? '';
    return { granted: false, name, holder, retryAfter: split ? Math.min(end, SPLIT_POLL) : end };
  }

  private async failure(votes: readonly Promise<Vote<Grant, Refusal>>[]): Promise<Error> {
    // It was decided without those who are about to answer. Nobody should be looking for a fault in them.
    const end = sleep(LAST_WORD, undefined);
    const cast = await Promise.all(votes.map((vote) => Promise.race([vote, end])));
    const outcomes = this.members.map(({ node }, index) => outcomeOf(node, cast[index]));
    const mismatch = outcomes.map(({ error }) => error).find(isLockKindMismatchError);
    if (mismatch !== undefined) return mismatch;
    // All that may have been granted is being taken back.
    return noMajority(this.request.names.join(','), outcomes, { effect: 'refused' });
  }
}

/** What too few members were able to do. */
export function noMajority(
  name: string,
  outcomes: readonly NodeOutcome[],
  { effect }: { effect: 'refused' | 'unknown' },
): LockUnavailableError {
  const said = outcomes.map(({ node, outcome }) => `${node}: ${outcome}`).join(', ');
  const cause = new Error(`no majority of the nodes (${said})`);
  const errors = outcomes.map(({ error }) => error);
  const hopeless = errors.filter((error) => isLockUnavailableError(error) && error.permanent).length;
  const permanent = hopeless >= quorumOf(outcomes.length);
  return new LockUnavailableError(name, { cause, effect, permanent, outcomes });
}

/** By name, because the member may come from another copy of this package. */
export const isTimeout = (error: unknown): boolean =>
  isLockUnavailableError(error) && error.cause instanceof Error && error.cause.name === 'CommandTimeout';

function mostFrequent<T>(values: readonly T[]): T | undefined {
  const times = (value: T) => values.filter((other) => other === value).length;
  return values.toSorted((a, b) => times(b) - times(a))[0];
}
