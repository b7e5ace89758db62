import { isLockUnavailableError } from '../../api/error-guards.js';
import type {
  AcquireAllReply,
  AcquireAllRequest,
  AcquireReply,
  AcquireRequest,
} from '../../store/lock-store.js';
import { type Answers, Ballot, tally, valuesOf, type Verdict } from './ballot.js';
import { Hold } from './holds.js';
import { noMajority } from './outcomes.js';
import type { Quorum } from './quorum.js';

/** The fencing tokens, in the order of the names. */
type Grant = readonly number[];
type Refusal = Extract<AcquireAllReply, { granted: false }>;
/** A member in quarantine may have granted the lock, and its vote does not count. */
type Vote = Grant | Refusal | 'quarantined';
type Request = AcquireRequest & AcquireAllRequest;

/** Longest time, ms, until the next request if no majority knows a holder of the lock. */
const SPLIT_POLL = 500;
/** The same if a rival was first at one member. It may have released the lock already, and woken the caller. */
const RIVAL_POLL = 50;

/** One attempt of one owner: a majority grants it, or all members get a release. */
export class MajorityAcquisition {
  private readonly ballot: Ballot<Vote>;
  private readonly request: Request;
  private readonly hold: Hold;
  private isTakenBack = false;

  constructor(
    private readonly quorum: Quorum,
    { names, owner, leaseTime, leastToken }: AcquireAllRequest,
  ) {
    this.ballot = new Ballot(quorum);
    this.request = { name: names[0] ?? '', names, owner, leaseTime, leastToken };
    this.hold = new Hold(names, leaseTime);
    quorum.holds.set(owner, this.hold);
  }

  /** @throws LockUnavailableError or LockKindMismatchError if there are too few answers */
  async run(): Promise<AcquireAllReply> {
    const { ballot, request, quorum } = this;
    const asked = new Set<number>();
    for (const index of quorum.isSplit(request.names) ? quorum.present : []) {
      asked.add(index);
      void this.vote(index, request);
      await ballot.until(() => 'enough');
      const [vote] = valuesOf([ballot.answers[index]]);
      if (vote === undefined || !isRefusal(vote)) break;
      if (!quorum.noteRival(vote.name, vote.holder)) continue;
      this.takeBack();
      return { ...vote, retryAfter: Math.min(vote.retryAfter, RIVAL_POLL), undecided: true };
    }
    for (const index of quorum.members.keys()) if (!asked.has(index)) void this.vote(index, request);
    await ballot.until(this.verdict);
    let fencingTokens: Grant | undefined;
    for (;;) {
      const grants = valuesOf(ballot.answers).filter(isGrant);
      if (grants.length < quorum.needed) return this.refused(grants.length);
      fencingTokens ??= grants.reduce((greatest, tokens) =>
        tokens.map((token, n) => Math.max(token, greatest[n] ?? 0)),
      );
      const behind = this.behind(fencingTokens);
      if (grants.length - behind.length >= quorum.needed) {
        this.hold.fencingTokens = fencingTokens;
        return { granted: true, fencingTokens };
      }
      for (const index of behind) {
        ballot.answers[index] = undefined;
        void this.vote(index, { ...request, leastToken: Math.max(...fencingTokens) });
      }
      await ballot.until(this.verdict);
    }
  }

  /** Asks one member. A single function without closures, because each promise of each node costs time. */
  private async vote(index: number, request: Request): Promise<void> {
    const { ballot, hold } = this;
    const { members, charters } = this.quorum;
    const member = members[index];
    // After the caller has released the locks, a further request would arrive after the release.
    if (member === undefined || hold.released.size > 0) return;
    ballot.ask(index);
    // If a majority is present, a wait for another connection would only delay the answer.
    if (member.isDown && this.quorum.present.length >= this.quorum.needed) {
      ballot.settle(index, { error: member.outage(request.names.join(',')) });
      return;
    }
    const { generation } = member;
    hold.ask(index);
    const isAllowed = request.leaseTime <= charters.allowed;
    try {
      const isOne = request.names.length === 1;
      const reply = await (isOne ? member.store.acquire(request) : member.store.acquireAll(request));
      hold.answered(index, reply.granted);
      // Read after the answer, because the request may have had to wait for a connection. A vote and its charter are of one.
      const isVote = isAllowed && (charters.votes(index) || (await charters.mayVote(index)));
      const error = charters.current(index)?.withheld;
      if (!reply.granted || (isVote && member.generation === generation))
        ballot.settle(index, { value: voteOf(reply, request.name) });
      else ballot.settle(index, error === undefined ? { value: 'quarantined' } : { error });
    } catch (error) {
      if (isLockUnavailableError(error) && error.effect === 'refused') hold.answered(index, false);
      ballot.settle(index, { error });
    }
    if (this.isTakenBack && hold.isUnsureOf(index)) this.giveUp(index, true);
  }

  private readonly verdict = (answers: Answers<Vote>): Verdict => {
    const { needed } = this.quorum;
    const grants = tally(answers, isGrant);
    if (grants >= needed) return 'decided';
    const { refusals } = this;
    const told = grants + refusals.length;
    const missing = answers.filter((answer) => answer === undefined).length;
    if (told + missing < needed) return 'enough';
    if (refusals.length === 0 || told < needed) return 'open';
    // If the first answers name different locks or holders, further answers show which one keeps the owner from a majority.
    const isOne = refusals.every((refusal) => isAlike(refusal, refusals[0] ?? refusal));
    return isOne && grants + missing < needed ? 'decided' : 'enough';
  };

  /** The members whose grants count only after they have learned the tokens; see "Tokens" in docs/design/redlock.md. */
  private behind(tokens: Grant): readonly number[] {
    const { quorum, request, ballot } = this;
    const { time = Infinity } = quorum.charters;
    const margin = marginOf(Math.min(request.leaseTime, quorum.leaseTime));
    const least = tokens.map((token) => (token > time + margin ? token : token - margin));
    return [...quorum.members.keys()].filter((index) => {
      const [vote] = valuesOf([ballot.answers[index]]);
      return vote !== undefined && isGrant(vote) && vote.some((token, n) => token < (least[n] ?? 0));
    });
  }

  private get refusals(): readonly Refusal[] {
    return valuesOf(this.ballot.answers).filter(isRefusal);
  }

  /** Sends the releases at once, after the requests under way. */
  private takeBack(): void {
    const { quorum, request, hold, ballot } = this;
    this.isTakenBack = true;
    quorum.holds.delete(request.owner);
    for (const index of quorum.members.keys()) {
      if (hold.mayBeHeldBy(index))
        this.giveUp(index, hold.isUnsureOf(index) && ballot.answers[index] !== undefined);
    }
  }

  private giveUp(index: number, insist: boolean): void {
    const { names, owner, leaseTime } = this.request;
    for (const name of names) this.quorum.giveBack(index, { name, owner }, leaseTime, this.hold, insist);
  }

  /** Each member names the first busy lock. The answer is the lock and the holder that most members name. */
  private refused(grants: number): Refusal {
    const { quorum, request, ballot, refusals } = this;
    const { needed } = quorum;
    this.takeBack();
    const alike = refusals.map((one) => refusals.filter((other) => isAlike(one, other)));
    const [most = []] = alike.sort((a, b) => b.length - a.length);
    const [first] = most;
    // Every possible grant is being released.
    if (first === undefined || refusals.length + grants < needed)
      throw (
        quorum.charters.conflict ?? noMajority(quorum, request.names.join(','), ballot.answers, 'refused')
      );
    const { name, holder } = first;
    const undecided = most.length < needed;
    if (undecided) quorum.wasSplit(request.names);
    // A majority is free after the end of this many holds.
    const busy = needed - grants - (refusals.length - most.length);
    const ends = most.map(({ retryAfter }) => retryAfter).sort((a, b) => a - b);
    const end = ends[busy - 1] ?? ends.at(-1) ?? 0;
    const retryAfter = undecided ? Math.min(end, SPLIT_POLL) : end;
    return { granted: false, name, holder, retryAfter, undecided };
  }
}

/** Greatest difference, µs, of the tokens that members give at the same time. */
export const marginOf = (leaseTime: number): number => (leaseTime * 1_000) / 2;

const isRefusal = (vote: Vote): vote is Refusal => typeof vote === 'object' && 'granted' in vote;

const isGrant = (vote: Vote): vote is Grant => typeof vote === 'object' && !isRefusal(vote);

function voteOf(reply: AcquireReply | AcquireAllReply, name: string): Grant | Refusal {
  if (!reply.granted) return { name, ...reply };
  return 'fencingTokens' in reply ? reply.fencingTokens : [reply.fencingToken];
}

const isAlike = (one: Refusal, other: Refusal) => one.name === other.name && one.holder === other.holder;
