import { asAnswer, type Found, isLockUnavailableError } from '../../api/error-guards.js';
import { now } from '../../runtime/clock.js';
import type { HoldState, RenewRequest } from '../../store/lock-store.js';
import { type Cast, outcomesOf } from './ask-members.js';
import { decide, tally } from './ballot.js';
import { noMajority } from './majority-acquisition.js';
import { whyNotHeld } from './not-held.js';
import type { Quorum } from './quorum.js';

type RenewalCast = Cast<Found<HoldState>>;

/** Renews holds on all members. A hold lasts while a majority keeps it. */
export class MajorityRenewals {
  constructor(private readonly quorum: Quorum) {}

  renew(requests: readonly RenewRequest[]): readonly Promise<HoldState>[] {
    const { members, presence, leaseLimit: limit } = this.quorum;
    if (requests.some(({ leaseTime }) => leaseTime > limit.most))
      return requests.map((one) => this.renewLonger(one));
    const answers = members.map(({ store }) => store.renew(requests));
    answers.forEach(([first], index) => {
      // The requests to one member are sent together, so one answer shows that the member answers.
      if (first !== undefined) void presence.observe(index, first);
    });
    return requests.map(async (request, n) => {
      const states = answers.map((ofMember) => (ofMember[n] ?? Promise.resolve('deleted')).catch(asAnswer));
      const decision = await decide(states, (cast) => this.count(cast));
      if ('cast' in decision) {
        throw noMajority(request.name, outcomesOf(members, decision.cast), { effect: 'unknown' });
      }
      if (decision.state === 'held') this.topUp(request, states);
      else this.giveUpRest(request);
      if (typeof decision.state !== 'string') throw decision.state;
      return decision.state;
    });
  }

  private async renewLonger(request: RenewRequest): Promise<HoldState> {
    const refusal = await this.quorum.leaseLimit.raise(request.name, request.leaseTime);
    if (refusal !== undefined) throw refusal;
    return (await this.renew([request])[0]) ?? 'deleted';
  }

  /** Counts only members that still have the lock. A member without an answer says nothing. */
  private count(cast: RenewalCast): { state: Found<HoldState> } | { cast: RenewalCast } | undefined {
    if (tally(cast, (state) => state === 'held') >= this.quorum.needed) return { state: 'held' };
    if (tally(cast, (state) => state !== 'held') > this.quorum.members.length - this.quorum.needed) {
      return { state: whyNotHeld(cast) };
    }
    return cast.includes(undefined) ? undefined : { cast };
  }

  /** A majority has the lock. Asks the other members to take it: they were unreachable, or have restarted. */
  private topUp(
    { name, owner, leaseTime }: RenewRequest,
    states: readonly Promise<Found<HoldState>>[],
  ): void {
    const holding = this.quorum.holdings.get(owner);
    if (holding === undefined) return;
    holding.prolong(leaseTime);
    states.forEach((answer, index) => {
      answer.then(
        async (state) => {
          if (state !== 'deleted' || holding.released.has(name)) return;
          // The hold at this member must end with the others: the renewal may only have asked for the state, and the
          // answer may be late.
          const left = Math.floor(holding.until - now());
          if (left <= 0) return;
          const leastToken = holding.fencingTokens.get(name);
          holding.ask(index);
          await this.quorum.members[index]?.store.acquire({ name, owner, leaseTime: left, leastToken }).then(
            () => {
              holding.answered(index);
            },
            (error: unknown) => {
              // If the effect is unknown, a later release is repeated.
              if (isLockUnavailableError(error) && error.effect === 'refused') holding.answered(index);
            },
          );
        },
        () => undefined,
      );
    });
  }

  /**
   * The lock is lost, because too few members have it. Without a release, these members would keep it for a whole lease
   * without an owner.
   */
  private giveUpRest({ name, owner, leaseTime }: RenewRequest): void {
    const holding = this.quorum.holdings.get(owner);
    holding?.released.add(name);
    const fencingToken = holding?.fencingTokens.get(name);
    const until = Math.max(now() + leaseTime, holding?.until ?? 0);
    this.quorum.releasers.forEach((releaser, index) => {
      // A top-up under way may arrive after the release.
      const insist = holding?.isUnsureOf(index) === true;
      void releaser.release({ name, owner, fencingToken }, until, { insist });
    });
  }
}
