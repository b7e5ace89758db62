import { isLockUnavailableError } from '../../api/error-guards.js';
import type {
  AcquireAllReply,
  AcquireAllRequest,
  AcquireReply,
  AcquireRequest,
} from '../../store/lock-store.js';
import { type Answers, Ballot, type Verdict } from './ballot.js';
import type { Hold } from './holds.js';
import { noMajority } from './outcomes.js';
import type { Quorum } from './quorum.js';

type Grant = Extract<AcquireAllReply, { granted: true }>;
type Refusal = Extract<AcquireAllReply, { granted: false }>;
/** A member in quarantine may have granted the lock, and its vote does not count. */
type Vote = AcquireAllReply | 'quarantined';
/** Made once for all members: a request for one lock, or for several. */
type Request = AcquireRequest & AcquireAllRequest;

/** Longest time, ms, until the next request if no majority knows a holder of the lock. */
const SPLIT_POLL = 500;
/** The same if one member has refused it for all members. Others may have released the lock already, and woken the caller. */
const FIRST_POLL = 50;

/** One attempt of one owner: a majority grants it, or all members get a release. */
export class MajorityAcquisition {
  private readonly ballot: Ballot<Vote>;
  private isTakenBack = false;

  constructor(
    private readonly quorum: Quorum,
    private readonly request: Request,
    private readonly hold: Hold,
  ) {
    this.ballot = new Ballot(quorum);
  }

  /**
   * @throws LockUnavailableError with each node's answer if there are too few answers
   * @throws LockKindMismatchError if a node has another kind of value under the name
   */
  async run(): Promise<AcquireAllReply> {
    const { ballot, request, quorum } = this;
    const { members, needed } = quorum;
    const first = quorum.firstAsked(request.names);
    if (first !== undefined) {
      // All processes ask the same member first, so the one that gets its grant mostly has no rival at the others.
      void this.vote(ballot, first, request);
      const [refusal] = votesOf(await ballot.until(() => 'enough')).refusals;
      if (refusal !== undefined) {
        this.takeBack();
        return { ...refusal, retryAfter: Math.min(refusal.retryAfter, FIRST_POLL), undecided: true };
      }
    }
    for (let index = 0; index < members.length; index++)
      if (index !== first) void this.vote(ballot, index, request);
    const answers = await ballot.until(this.verdict);
    const { grants, refusals } = votesOf(answers);
    const isGranted = grants.length >= needed;
    const fencingTokens = isGranted ? await this.agree() : undefined;
    if (fencingTokens !== undefined) {
      request.names.forEach((name, n) => this.hold.fencingTokens.set(name, fencingTokens[n] ?? 0));
      return { granted: true, fencingTokens };
    }
    this.takeBack();
    if (!isGranted && refusals.length > 0 && refusals.length + grants.length >= needed)
      return this.refusalBy(refusals, grants.length);
    // Every possible grant is being released.
    throw quorum.charters.conflict ?? noMajority(quorum, request.names.join(','), answers, 'refused');
  }

  /** Asks one member. A single function without closures, because each promise of each node costs time. */
  private async vote(ballot: Ballot<Vote>, index: number, request: Request): Promise<void> {
    const { hold } = this;
    const { members, charters } = this.quorum;
    const member = members[index];
    // After the caller has released the locks, a further request would arrive after the release.
    if (member === undefined || hold.released.size > 0) return;
    ballot.ask(index);
    // If a majority is present, a wait for another connection would only delay the answer.
    if (member.isDown && this.quorum.hasMajority) {
      ballot.settle(index, { error: member.outage(request.names.join(',')) });
      return;
    }
    const { generation } = member;
    const before = hold.ask(index);
    const isAllowed = request.leaseTime <= charters.allowed;
    try {
      const isOne = request.names.length === 1;
      const reply = await (isOne ? member.store.acquire(request) : member.store.acquireAll(request));
      hold.answered(index, reply.granted || before);
      // The charter is read after the answer, because the request may have had to wait for a connection. Both are of one
      // server if the generation is still the same.
      const isVote = isAllowed && (charters.votes(index) || (await charters.mayVote(index)));
      const error = charters.withheldBy(index);
      if (!reply.granted || (isVote && member.generation === generation))
        ballot.settle(index, { value: named(reply, request.name) });
      else ballot.settle(index, error === undefined ? { value: 'quarantined' } : { error });
    } catch (error) {
      if (isLockUnavailableError(error) && error.effect === 'refused') hold.answered(index, before);
      ballot.settle(index, { error });
    }
    if (this.isTakenBack && hold.isUnsureOf(index)) this.giveUp(index, true);
  }

  private readonly verdict = (answers: Answers<Vote>): Verdict => {
    const { needed } = this.quorum;
    const { grants, refusals, missing } = votesOf(answers);
    if (grants.length >= needed) return 'decided';
    const told = grants.length + refusals.length;
    if (told + missing < needed) return 'enough';
    if (refusals.length === 0 || told < needed) return 'open';
    // If the first answers name different locks or holders, further answers show which one keeps the owner from a majority.
    const [first] = refusals;
    const isOne = refusals.every(({ name, holder }) => name === first?.name && holder === first.holder);
    return isOne && grants.length + missing < needed ? 'decided' : 'enough';
  };

  /**
   * The tokens are the greatest that the members have given. Members that are too far behind learn them first; see "Tokens"
   * in docs/design/redlock.md.
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
    if (behind.length === 0) return tokens;
    const telling = new Ballot<Vote>(quorum);
    const learning = { ...request, leastToken: Math.max(...tokens) };
    for (const index of behind) void this.vote(telling, index, learning);
    const enough = quorum.needed - (grants.length - behind.length);
    const isTold = (cast: Answers<Vote>) => votesOf(cast).grants.length >= enough;
    return isTold(await telling.until((cast) => (isTold(cast) ? 'decided' : 'open'))) ? tokens : undefined;
  }

  /** Sends the releases at once, after the requests under way. */
  private takeBack(): void {
    const { hold, ballot } = this;
    this.isTakenBack = true;
    for (const index of this.quorum.members.keys()) {
      if (hold.mayBeHeldBy(index))
        this.giveUp(index, hold.isUnsureOf(index) && ballot.answers[index] !== undefined);
    }
  }

  private giveUp(index: number, insist: boolean): void {
    const { names, owner, leaseTime } = this.request;
    for (const name of names) this.quorum.giveBack(index, { name, owner }, leaseTime, this.hold, insist);
  }

  /**
   * Each member names the first busy lock. The answer is the lock that most members name, with the end and the holder that
   * they report. A stray hold on a minority says nothing about that lock.
   */
  private refusalBy(refusals: readonly Refusal[], grants: number): Refusal {
    const { needed } = this.quorum;
    const name = mostFrequent(refusals.map((refusal) => refusal.name)) ?? '';
    const ofName = refusals.filter((refusal) => refusal.name === name);
    const holder = mostFrequent(ofName.map((refusal) => refusal.holder));
    const undecided = ofName.filter((refusal) => refusal.holder === holder).length < needed;
    if (undecided) this.quorum.wasSplit(this.request.names);
    // A majority is free after the end of this many holds.
    const busy = needed - grants - (refusals.length - ofName.length);
    const ends = ofName.map(({ retryAfter }) => retryAfter).sort((a, b) => a - b);
    const end = ends[busy - 1] ?? ends.at(-1) ?? 0;
    const retryAfter = undecided ? Math.min(end, SPLIT_POLL) : end;
    return { granted: false, name, holder, retryAfter, undecided };
  }
}

/** Greatest difference, µs, of the tokens that members give at the same time. */
export const marginOf = (leaseTime: number): number => (leaseTime * 1_000) / 2;

function named(reply: AcquireReply | AcquireAllReply, name: string): AcquireAllReply {
  if (!reply.granted) return { name, ...reply };
  return 'fencingTokens' in reply ? reply : { granted: true, fencingTokens: [reply.fencingToken] };
}

function votesOf(answers: Answers<Vote>): { grants: Grant[]; refusals: Refusal[]; missing: number } {
  const grants: Grant[] = [];
  const refusals: Refusal[] = [];
  let missing = 0;
  for (const answer of answers) {
    if (answer === undefined) missing++;
    else if ('error' in answer || answer.value === 'quarantined') continue;
    else if (answer.value.granted) grants.push(answer.value);
    else refusals.push(answer.value);
  }
  return { grants, refusals, missing };
}

function mostFrequent<T>(values: readonly T[]): T | undefined {
  const times = (value: T) => values.filter((other) => other === value).length;
  return [...values].sort((a, b) => times(b) - times(a))[0];
}
