import { asAnswer, type Found, isLockUnavailableError } from '../../api/error-guards.js';
import { now } from '../../runtime/clock.js';
import type { HoldState, RenewRequest } from '../../store/lock-store.js';
import { type Answers, gather, tally } from './ballot.js';
import { noMajority, outcomesOf, whyNotHeld } from './outcomes.js';
import type { Quorum } from './quorum.js';

/** Renews holds on all members. A hold lasts while a majority keeps it. */
export class MajorityRenewals {
  constructor(private readonly quorum: Quorum) {}

  renew(requests: readonly RenewRequest[]): readonly Promise<HoldState>[] {
    const { members, leaseLimit } = this.quorum;
    if (requests.some(({ leaseTime }) => leaseTime > leaseLimit.most))
      return requests.map((one) => this.renewLonger(one));
    // The requests to one member are sent together.
    const sent = members.map(({ store }) => store.renew(requests));
    return requests.map((request, n) =>
      this.count(
        request,
        sent.map((states) => (states[n] ?? Promise.resolve('deleted' as const)).catch(asAnswer)),
      ),
    );
  }

  private async renewLonger(request: RenewRequest): Promise<HoldState> {
    const refusal = await this.quorum.leaseLimit.raise(request.name, request.leaseTime);
    if (refusal !== undefined) throw refusal;
    return (await this.renew([request])[0]) ?? 'deleted';
  }

  /** Counts only members that still have the lock. A member without an answer says nothing. */
  private async count(
    request: RenewRequest,
    states: readonly Promise<Found<HoldState>>[],
  ): Promise<HoldState> {
    const { members, needed } = this.quorum;
    const isHeld = (answers: Answers<Found<HoldState>>) =>
      tally(answers, (state) => state === 'held') >= needed;
    const isLost = (answers: Answers<Found<HoldState>>) =>
      tally(answers, (state) => state !== 'held') > members.length - needed;
    const answers = await gather(
      this.quorum,
      (_, index) => states[index],
      (cast) => (isHeld(cast) || isLost(cast) ? 'decided' : 'open'),
    );
    if (isHeld(answers)) {
      this.topUp(request, states);
      return 'held';
    }
    if (!isLost(answers)) throw noMajority(request.name, outcomesOf(members, answers), 'unknown');
    this.giveUpRest(request);
    const reason = whyNotHeld(answers);
    if (typeof reason !== 'string') throw reason;
    return reason;
  }

  /** A majority has the lock. Asks the other members to take it: they were unreachable, or have restarted. */
  private topUp(
    { name, owner, leaseTime }: RenewRequest,
    states: readonly Promise<Found<HoldState>>[],
  ): void {
    const hold = this.quorum.holds.get(owner);
    if (hold === undefined) return;
    hold.prolong(leaseTime);
    const restore = async (index: number, answer: Promise<Found<HoldState>>) => {
      if ((await answer) !== 'deleted' || hold.released.has(name)) return;
      // The hold at this member must end with the others: the renewal may only have asked for the state, and the answer
      // may be late.
      const left = Math.floor(hold.until - now());
      if (left <= 0) return;
      hold.ask(index);
      const request = { name, owner, leaseTime: left, leastToken: hold.fencingTokens.get(name) };
      try {
        await this.quorum.members[index]?.store.acquire(request);
        hold.answered(index, true);
      } catch (error) {
        // If the effect is unknown, a later release is repeated.
        if (isLockUnavailableError(error) && error.effect === 'refused') hold.answered(index, true);
      }
    };
    states.forEach((answer, index) => void restore(index, answer).catch(() => undefined));
  }

  /**
   * The lock is lost, because too few members have it. Without a release, these members would keep it for a whole lease
   * without an owner.
   */
  private giveUpRest({ name, owner, leaseTime }: RenewRequest): void {
    const hold = this.quorum.holds.get(owner);
    hold?.released.add(name);
    const request = { name, owner, fencingToken: hold?.fencingTokens.get(name) };
    const until = Math.max(now() + leaseTime, hold?.until ?? 0);
    this.quorum.releasers.forEach((releaser, index) => {
      // A top-up under way may arrive after the release.
      void releaser.release(request, until, { insist: hold?.isUnsureOf(index) === true });
    });
  }
}
