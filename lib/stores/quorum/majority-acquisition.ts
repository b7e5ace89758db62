import { LockUnavailableError } from '../../api/errors.js';
import { isLockUnavailableError } from '../../api/error-guards.js';
import { now } from '../../runtime/clock.js';
import type { AcquireAllReply, AcquireAllRequest, AcquireReply } from '../../store/lock-store.js';
import { type Answers, Ballot, valuesOf, type Verdict } from './ballot.js';
import type { Hold } from './holds.js';
import type { Member } from './member.js';
import { mismatchAmong, noMajority, outcomesOf } from './outcomes.js';
import type { Quorum } from './quorum.js';

type Grant = Extract<AcquireAllReply, { granted: true }>;
type Refusal = Extract<AcquireAllReply, { granted: false }>;
/** A member in quarantine may have granted the lock, and its vote does not count. */
type Vote = AcquireAllReply | 'quarantined';

/** Longest time, ms, until the next request if no majority knows a holder of the lock. */
const SPLIT_POLL = 500;

/** One attempt of one owner: a majority grants it, or all members get a release. */
export class MajorityAcquisition {
  private readonly ballot: Ballot<Vote>;
  private isTakenBack = false;

  constructor(
    private readonly quorum: Quorum,
    private readonly request: AcquireAllRequest,
    private readonly hold: Hold,
  ) {
    this.ballot = new Ballot(quorum);
  }

  /**
   * @throws LockUnavailableError with each node's answer if there are too few answers
   * @throws LockKindMismatchError if a node has another kind of value under the name
   */
  async run(): Promise<AcquireAllReply> {
    const { ballot, request } = this;
    const { members, needed, splitVotes } = this.quorum;
    const split = splitVotes.remaining(request.names);
    const refusal = split > 0 && this.hasMajority ? await this.askOne() : undefined;
    if (refusal !== undefined) {
      this.takeBack();
      return { ...refusal, retryAfter: Math.min(refusal.retryAfter, split), undecided: true };
    }
    for (const index of members.keys()) {
      if (!ballot.hasAsked(index)) void this.vote(ballot, index, request.leastToken);
    }
    const answers = await ballot.until((cast) => this.verdict(cast));
    const { grants, refusals } = votesOf(answers);
    const isGranted = grants.length >= needed;
    const fencingTokens = isGranted ? await this.agree() : undefined;
    if (fencingTokens !== undefined) return { granted: true, fencingTokens };
    this.takeBack();
    if (!isGranted && refusals.length > 0 && refusals.length + grants.length >= needed)
      return this.refusalBy(refusals, grants.length);
    // Every possible grant is being released.
    const error = noMajority(request.names.join(','), outcomesOf(members, answers), 'refused');
    throw mismatchAmong(answers) ?? error;
  }

  /**
   * Asks the first member that answers. All processes ask the members in the same order, so the process that gets this
   * grant mostly has no rival at the other members.
   * @returns the refusal of the member
   */
  private async askOne(): Promise<Refusal | undefined> {
    const { ballot, request } = this;
    for (const index of this.quorum.presence.present()) {
      if (this.isUnwanted) return undefined;
      void this.vote(ballot, index, request.leastToken);
      const { [index]: answer } = await ballot.until((cast) =>
        cast[index] === undefined ? 'enough' : 'decided',
      );
      // A silent or failed member decides nothing.
      if (answer !== undefined && 'value' in answer) return votesOf([answer]).refusals[0];
    }
    return undefined;
  }

  /** Asks one member. A single function without closures, because each promise of each node costs time. */
  private async vote(ballot: Ballot<Vote>, index: number, leastToken: number | undefined): Promise<void> {
    const { hold, request } = this;
    const { members, charters } = this.quorum;
    const member = members[index];
    ballot.ask(index);
    if (member === undefined || this.isUnwanted || (member.isDown && this.hasMajority)) {
      ballot.failed(index, this.isUnwanted ? this.unwanted() : member?.outage(request.names.join(',')));
      return;
    }
    const { generation } = member;
    const before = hold.ask(index);
    const isAllowed = request.leaseTime <= charters.allowed;
    try {
      const reply = await this.send(member, leastToken);
      hold.answered(index, reply.granted || before);
      // The charter is read after the answer, because the request may have had to wait for a connection. Both are of one
      // server if the generation is still the same.
      const isVote = isAllowed && (charters.votes(index) || (await charters.mayVote(index)));
      const withheld = charters.withheldBy(index);
      if (!reply.granted || (isVote && member.generation === generation))
        ballot.answered(index, named(reply, request));
      else if (withheld === undefined) ballot.answered(index, 'quarantined');
      else ballot.failed(index, withheld);
    } catch (error) {
      if (isLockUnavailableError(error) && error.effect === 'refused') hold.answered(index, before);
      ballot.failed(index, error);
    }
    if (this.isTakenBack && hold.isUnsureOf(index)) this.giveUp(index, true);
  }

  private send({ store }: Member, leastToken: number | undefined): Promise<AcquireReply | AcquireAllReply> {
    const { names, owner, leaseTime } = this.request;
    const [name = ''] = names;
    // Field by field, because a spread is slow.
    return names.length === 1
      ? store.acquire({ name, owner, leaseTime, leastToken })
      : store.acquireAll({ names, owner, leaseTime, leastToken });
  }

  /** Whether the caller has released the locks during the requests. A further request would arrive after the release. */
  private get isUnwanted(): boolean {
    return this.hold.released.size > 0;
  }

  private unwanted(): Error {
    const cause = new Error('given up');
    return new LockUnavailableError(this.request.names.join(','), { cause, effect: 'refused' });
  }

  /** If a majority is present, a wait for another connection would only delay the answer. */
  private get hasMajority(): boolean {
    return this.quorum.presence.present().length >= this.quorum.needed;
  }

  private verdict(answers: Answers<Vote>): Verdict {
    const { needed } = this.quorum;
    const { grants, refusals, missing } = votesOf(answers);
    if (grants.length >= needed) return 'decided';
    const told = grants.length + refusals.length;
    const isTaken = refusals.length > 0 && told >= needed;
    // If the first answers name different locks, further answers show which lock keeps the owner from a majority.
    const isCertain =
      grants.length + missing < needed && refusals.every(({ name }) => name === refusals[0]?.name);
    if (isTaken) return isCertain ? 'decided' : 'enough';
    return told + missing < needed ? 'enough' : 'open';
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
  private async agree(): Promise<readonly number[] | undefined> {
    const { request, quorum } = this;
    const { time = Infinity } = quorum.charters;
    const given = this.ballot.answers.map((answer) => votesOf([answer]).grants[0]?.fencingTokens);
    const grants = given.filter((tokens) => tokens !== undefined);
    const tokens = request.names.map((_, n) => Math.max(...grants.map((each) => each[n] ?? 0)));
    const margin = marginOf(Math.min(request.leaseTime, quorum.leaseTime));
    const least = tokens.map((token) => (token > time + margin ? token : token - margin));
    const isBehind = (index: number) => given[index]?.some((token, n) => token < (least[n] ?? 0)) === true;
    const behind = [...given.keys()].filter(isBehind);
    if (behind.length === 0 || this.isUnwanted) return tokens;
    const telling = new Ballot<Vote>(quorum);
    for (const index of behind) void this.vote(telling, index, Math.max(...tokens));
    const enough = quorum.needed - (grants.length - behind.length);
    const isTold = (cast: Answers<Vote>) => votesOf(cast).grants.length >= enough;
    const answers = await telling.until((cast) => (isTold(cast) ? 'decided' : 'open'));
    return isTold(answers) ? tokens : undefined;
  }

  /** Sends the releases at once, after the requests under way. */
  private takeBack(): void {
    const { hold, ballot } = this;
    this.isTakenBack = true;
    for (const index of this.quorum.members.keys()) {
      if (!hold.mayBeHeldBy(index)) continue;
      this.giveUp(index, hold.isUnsureOf(index) && ballot.answers[index] !== undefined);
    }
  }

  private giveUp(index: number, insist: boolean): void {
    const { names, owner, leaseTime } = this.request;
    const until = now() + leaseTime;
    for (const name of names) void this.quorum.releasers[index]?.release({ name, owner }, until, { insist });
  }

  /**
   * Each member names the first busy lock. The answer is the lock that alone keeps the owner from a majority, with the
   * end and the holder that the members report. A stray hold on a minority says nothing about that lock.
   */
  private refusalBy(refusals: readonly Refusal[], grants: number): Refusal {
    const { members, presence, needed, splitVotes } = this.quorum;
    const [name = ''] = byFrequency(refusals.map((refusal) => refusal.name));
    const ofName = refusals.filter((refusal) => refusal.name === name);
    const [holder] = byFrequency(ofName.map((refusal) => refusal.holder));
    const agreeing = ofName.filter((refusal) => refusal.holder === holder).length;
    const pending = members.filter((_, index) => this.hold.isUnsureOf(index) && !presence.isAbsent(index));
    const isSplit = agreeing + pending.length < needed;
    if (isSplit) splitVotes.add(this.request.names);
    const voices = ofName.length > members.length - needed ? ofName : refusals;
    const free = grants + refusals.length - voices.length;
    // A majority is free after the end of this many holds.
    const ends = voices.map(({ retryAfter }) => retryAfter).sort((a, b) => a - b);
    const end = ends[needed - free - 1] ?? ends.at(-1) ?? 0;
    const retryAfter = isSplit ? Math.min(end, SPLIT_POLL) : end;
    return { granted: false, name, holder, retryAfter, undecided: agreeing < needed };
  }
}

/** Greatest difference, µs, of the tokens that members give at the same time. */
export const marginOf = (leaseTime: number): number => (leaseTime * 1_000) / 2;

function named(reply: AcquireReply | AcquireAllReply, { names }: AcquireAllRequest): AcquireAllReply {
  if (!reply.granted) return { name: names[0] ?? '', ...reply };
  return 'fencingTokens' in reply ? reply : { granted: true, fencingTokens: [reply.fencingToken] };
}

function votesOf(answers: Answers<Vote>): { grants: Grant[]; refusals: Refusal[]; missing: number } {
  const votes = valuesOf(answers).filter((vote) => vote !== 'quarantined');
  return {
    grants: votes.filter((vote) => vote.granted),
    refusals: votes.filter((vote) => !vote.granted),
    missing: answers.filter((answer) => answer === undefined).length,
  };
}

/** Each value once, the most frequent first. */
function byFrequency<T>(values: readonly T[]): readonly T[] {
  const times = (value: T) => values.filter((other) => other === value).length;
  return [...new Set(values)].sort((a, b) => times(b) - times(a));
}
