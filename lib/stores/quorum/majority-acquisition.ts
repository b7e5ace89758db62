import { LockUnavailableError, type NodeOutcome } from '../../api/errors.js';
import { isLockKindMismatchError, isLockUnavailableError } from '../../api/error-guards.js';
import { random, sleep } from '../../runtime/runtime.js';
import { isWorthAnotherTry, worthAnotherTry } from '../../store/another-try.js';
import type { AcquireAllReply, AcquireAllRequest, LockStore } from '../../store/lock-store.js';
import { count, countWithout, decide, outcomeOf, tally, type Vote } from './ballot.js';
import { CHECK } from './contention.js';
import type { Holding } from './holdings.js';
import { type Member, quorumOf } from './member.js';
import { isTakenBack, isTimeout } from './presence.js';
import type { Quorum } from './quorum.js';

type Grant = Extract<AcquireAllReply, { granted: true }>;
type Refusal = Extract<AcquireAllReply, { granted: false }>;

/** ms for which a failed attempt waits for further answers, in order to report them. */
const LAST_WORD = 50;
/** Longest pause, ms, after a split vote in spite of a member that was asked first. */
const RETREAT = 20;
/** Longest time, ms, until the next request if no majority knows a holder of the lock. */
const SPLIT_POLL = 500;

/** The part of one member in an attempt. */
interface Seat {
  readonly member: Member;
  readonly index: number;
  /** Undefined before the request. */
  reply: Promise<AcquireAllReply> | undefined;
  /** The connection generation of the request. */
  generation: number | undefined;
}

/** One attempt of one owner: a majority grants it, or all members get a release. */
export class MajorityAcquisition<A extends { readonly granted: boolean }> {
  private readonly seats: readonly Seat[];

  constructor(
    private readonly quorum: Quorum,
    private readonly request: AcquireAllRequest,
    private readonly holding: Holding,
    /** Asks one member for the locks. */
    private readonly send: (store: LockStore, leastToken: number | undefined) => Promise<A>,
    private readonly read: (answer: A) => AcquireAllReply,
    /** Ensures that one member releases the locks. */
    private readonly giveUp: (index: number, insist: boolean) => void,
  ) {
    this.seats = quorum.members.map((member, index) => {
      return { member, index, reply: undefined, generation: undefined };
    });
  }

  /**
   * @throws LockUnavailableError with each node's answer if there are too few answers
   * @throws LockKindMismatchError if a node has another kind of value under the name
   */
  async run(): Promise<AcquireAllReply> {
    const { presence, contention } = this.quorum;
    const { names } = this.request;
    const isRace = contention.asksOneFirst(names);
    if (isRace && this.hasMajority) {
      const refusal = await this.askOne();
      if (refusal !== undefined) {
        this.takeBack();
        return refusal;
      }
    }
    const votes = this.seats.map((seat) => this.poll(seat));
    const result = await decide(votes, count, { presence, without: countWithout });
    if (result.outcome === 'granted') {
      const fencingTokens = await this.agree(result.grants);
      if (fencingTokens !== undefined) {
        contention.decided(names, true);
        return { granted: true, fencingTokens };
      }
    }
    this.takeBack();
    if (result.outcome === 'taken') {
      const { refusals, grants } = result;
      if (new Set(refusals.map(({ name }) => name)).size === 1)
        return await this.refuse(refusals, grants, isRace);
      // The first answers decide, but name different locks. Further answers show which lock keeps the owner from a
      // majority.
      const cast = await this.lastWords(votes);
      const all = cast.flatMap((vote) => (vote?.outcome === 'taken' ? [vote.refusal] : []));
      return await this.refuse(all, cast.filter((vote) => vote?.outcome === 'granted').length, isRace);
    }
    throw await this.failure(votes);
  }

  /**
   * Asks the first member that answers. All processes ask the members in the same order, so the process that gets this
   * grant mostly has no rival at the other members.
   * @returns the refusal of the member
   */
  private async askOne(): Promise<Refusal | undefined> {
    const { presence, contention } = this.quorum;
    const { names } = this.request;
    const headStart = contention.headStart(names);
    if (headStart > 0) await sleep(headStart);
    for (const seat of this.seats) {
      if (this.isUnwanted) return undefined;
      if (presence.isAbsent(seat.index)) continue;
      // A silent or failed member decides nothing.
      const reply = await presence.unlessAbsent(seat.index, this.ask(seat)).catch(() => undefined);
      if (reply === undefined) continue;
      if (reply.granted) return undefined;
      contention.refusedByOne(names);
      return { ...reply, retryAfter: Math.min(reply.retryAfter, CHECK), undecided: true };
    }
    return undefined;
  }

  /** Whether the caller has released the locks during the requests. A further request would arrive after the release. */
  private get isUnwanted(): boolean {
    return this.holding.released.size > 0;
  }

  private get hasMajority(): boolean {
    return this.quorum.presence.present().length >= this.quorum.needed;
  }

  /** Asks each member at most once. */
  private ask(seat: Seat): Promise<AcquireAllReply> {
    seat.generation ??= seat.member.generation;
    return (seat.reply ??= this.isWorthAsking(seat)
      ? this.sendTo(seat, this.request.leastToken)
      : Promise.reject(this.notAsked(seat)));
  }

  /** If a majority is present, a wait for another connection would only delay the answer. */
  private isWorthAsking({ member }: Seat): boolean {
    return !this.isUnwanted && !(member.isDown && this.hasMajority);
  }

  private notAsked({ member }: Seat): Error {
    const name = this.request.names.join(',');
    if (!this.isUnwanted) return member.outage(name);
    return new LockUnavailableError(name, { cause: new Error('given up'), effect: 'refused' });
  }

  /** Records the answer before its caller sees it, because a later release reads the record. */
  private sendTo({ member, index }: Seat, leastToken: number | undefined): Promise<AcquireAllReply> {
    const { holding } = this;
    const { presence } = this.quorum;
    const again = holding.mayBeHeldBy(index);
    holding.ask(index);
    const sentAt = presence.asked(index);
    return this.send(member.store, leastToken).then(
      (answer) => {
        presence.answered(index, sentAt);
        if (answer.granted || again) holding.answered(index);
        else holding.refused(index);
        return this.read(answer);
      },
      (error: unknown) => {
        presence.failed(index, sentAt, error);
        if (isLockUnavailableError(error) && error.effect === 'refused') {
          if (again) holding.answered(index);
          else holding.refused(index);
        }
        throw error;
      },
    );
  }

  /** Not an async function, which would cost several promises per node and acquisition. */
  private poll(seat: Seat): Promise<Vote<Grant, Refusal>> {
    const { member, index } = seat;
    const asked = this.ask(seat);
    // The charter is requested at the same time over the same connection, so that one server answers both requests.
    const { charters } = this.quorum;
    const admitted =
      this.holding.mayBeHeldBy(index) &&
      this.request.leaseTime <= charters.allowed &&
      (charters.quarantineOf(index) === 0 || charters.mayVote(index));
    const failed = (error: unknown): Vote<Grant, Refusal> => {
      return { outcome: isTimeout(error) || isTakenBack(error) ? 'timeout' : 'error', error };
    };
    return asked.then((reply) => {
      if (!reply.granted) return { outcome: 'taken', refusal: reply };
      const vote = (counts: boolean): Vote<Grant, Refusal> => {
        if (counts && member.generation === seat.generation) return { outcome: 'granted', grant: reply };
        const error = charters.refusalOf(index);
        return error === undefined ? { outcome: 'quarantined' } : { outcome: 'error', error };
      };
      return typeof admitted === 'boolean' ? vote(admitted) : admitted.then(vote, failed);
    }, failed);
  }

  /**
   * The tokens are the greatest that the members have given. The next majority includes one of these members, and that
   * member then gives a greater token: it has learned this token with the release, or the lease has ended and its clock
   * has advanced by that time. Only a member whose clock is further behind must learn the token now. The margin does
   * not grow with longer leases, because a forced release ends such a lease early, and adds the module's margin itself.
   * A token that is ahead of the clocks by more than the margin comes from a fast clock, or from no clock. Other clocks
   * may not reach it by the end of the lease, so all members learn it.
   * @returns undefined if too few members have learned it
   */
  private async agree(grants: ReadonlyMap<number, Grant>): Promise<readonly number[] | undefined> {
    const { names, leaseTime } = this.request;
    const { time = Infinity } = this.quorum.charters;
    const all = [...grants.values()];
    const tokens = names.map((_, n) => Math.max(...all.map(({ fencingTokens }) => fencingTokens[n] ?? 0)));
    const margin = marginOf(Math.min(leaseTime, this.quorum.leaseTime));
    const least = tokens.map((token) => (token > time + margin ? token : token - margin));
    const behind = this.seats.filter(({ index }) =>
      grants.get(index)?.fencingTokens.some((token, n) => token < (least[n] ?? 0)),
    );
    if (behind.length === 0 || this.isUnwanted) return tokens;
    const told = behind.map(async (seat) => (await this.sendTo(seat, Math.max(...tokens))).granted);
    const enough = this.quorum.needed - (grants.size - behind.length);
    const agreed = await decide(told, (cast) => {
      if (tally(cast, (granted) => granted) >= enough) return { enough: true };
      return cast.includes(undefined) ? undefined : { enough: false };
    });
    return agreed.enough ? tokens : undefined;
  }

  /** Sends the releases at once, after the requests under way. */
  private takeBack(): void {
    const { holding } = this;
    for (const { reply, index } of this.seats) {
      if (!holding.mayBeHeldBy(index)) continue;
      this.giveUp(index, false);
      const insist = () => {
        if (holding.isUnsureOf(index)) this.giveUp(index, true);
      };
      reply?.then(insist, insist);
    }
  }

  /**
   * Each member names the first busy lock. The answer is the lock that alone keeps the owner from a majority, with the
   * end and the holder that the members report. A stray hold on a minority says nothing about that lock.
   */
  private async refuse(refusals: readonly Refusal[], grants: number, isRace: boolean): Promise<Refusal> {
    const { holding } = this;
    const { members, presence, contention, needed } = this.quorum;
    const { names } = this.request;
    const [name] = byFrequency(refusals.map((refusal) => refusal.name));
    const ofName = refusals.filter((refusal) => refusal.name === name);
    const decisive = ofName.length > members.length - needed;
    const voices = decisive ? ofName : refusals;
    const unknown = members.length - refusals.length - grants;
    const [holder] = byFrequency(ofName.map((refusal) => refusal.holder));
    const agreeing = ofName.filter((refusal) => refusal.holder === holder).length;
    const pending = members.filter(
      (_, index) => holding.isUnsureOf(index) && !presence.isAbsent(index),
    ).length;
    const split = agreeing + pending < needed;
    if (split) contention.expect(names);
    else contention.decided(names, false);
    // Each contender releases its part of the members. They have not asked the same member first, so without a pause
    // they would collide again.
    if (split && isRace) await sleep(random() * RETREAT);
    // A majority is free after the end of this many holds.
    const ends = voices.map(({ retryAfter }) => retryAfter).sort((a, b) => a - b);
    const end = ends[needed - (members.length - unknown - voices.length) - 1] ?? ends.at(-1) ?? 0;
    return {
      granted: false,
      name: name ?? names[0] ?? '',
      holder,
      retryAfter: split ? Math.min(end, SPLIT_POLL) : end,
      undecided: agreeing < needed,
    };
  }

  /** The decision may precede some answers. Most of these are on their way, and their nodes have no fault to report. */
  private async lastWords(
    votes: readonly Promise<Vote<Grant, Refusal>>[],
  ): Promise<readonly (Vote<Grant, Refusal> | undefined)[]> {
    const end = sleep(LAST_WORD).then(() => undefined);
    const absent = Promise.resolve(undefined);
    return await Promise.all(
      votes.map((vote, index) => Promise.race([vote, this.quorum.presence.isAbsent(index) ? absent : end])),
    );
  }

  private async failure(votes: readonly Promise<Vote<Grant, Refusal>>[]): Promise<Error> {
    const cast = await this.lastWords(votes);
    const outcomes = this.quorum.members.map(({ node }, index) => outcomeOf(node, cast[index]));
    const mismatch = outcomes.map(({ error }) => error).find(isLockKindMismatchError);
    if (mismatch !== undefined) return mismatch;
    // Every possible grant is being released.
    return noMajority(this.request.names.join(','), outcomes, { effect: 'refused' });
  }
}

/** Greatest difference, µs, of the tokens that members give at the same time. */
export const marginOf = (leaseTime: number): number => (leaseTime * 1_000) / 2;

/** The error for an operation without a majority. */
export function noMajority(
  name: string | undefined,
  outcomes: readonly NodeOutcome[],
  { effect }: { effect: 'refused' | 'unknown' },
): LockUnavailableError {
  const said = outcomes.map(({ node, outcome }) => `${node}: ${outcome}`).join(', ');
  const cause = new Error(`no majority of the nodes (${said})`);
  const errors = outcomes.map(({ error }) => error);
  const hopeless = errors.filter((error) => isLockUnavailableError(error) && error.permanent).length;
  const permanent = hopeless >= quorumOf(outcomes.length);
  const unavailable = new LockUnavailableError(name, { cause, effect, permanent, outcomes });
  // What drops one idle connection mostly drops those to the other nodes, too.
  const isDropped = errors.some((error) => error instanceof Error && isWorthAnotherTry(error));
  return isDropped ? worthAnotherTry(unavailable) : unavailable;
}

/** Each value once, the most frequent first. */
function byFrequency<T>(values: readonly T[]): readonly T[] {
  const times = (value: T) => values.filter((other) => other === value).length;
  return [...new Set(values)].sort((a, b) => times(b) - times(a));
}
