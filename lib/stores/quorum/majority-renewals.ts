import { asAnswer, type Found, isLockUnavailableError } from '../../api/error-guards.js';
import { now } from '../../runtime/clock.js';
import type { HoldState, RenewRequest } from '../../store/lock-store.js';
import { Ballot } from './ballot.js';
import { majorityFor } from './outcomes.js';
import type { Quorum } from './quorum.js';

type State = Found<HoldState>;

/** Renews holds on all members. A hold lasts while a majority keeps it. */
export function renewEverywhere(
  quorum: Quorum,
  requests: readonly RenewRequest[],
): readonly Promise<HoldState>[] {
  const { leaseLimit } = quorum;
  if (requests.every(({ leaseTime }) => leaseTime <= leaseLimit.most)) return renewals(quorum, requests);
  return requests.map(async (request) => {
    const refusal = await leaseLimit.raise(request.name, request.leaseTime);
    if (refusal !== undefined) throw refusal;
    return (await renewals(quorum, [request])[0]) ?? 'deleted';
  });
}

/** The requests to one member are sent together. */
function renewals(quorum: Quorum, requests: readonly RenewRequest[]): readonly Promise<HoldState>[] {
  const sent = quorum.members.map(({ store }) => store.renew(requests));
  return requests.map((request, n) => {
    const states = sent.map((each) => (each[n] ?? Promise.resolve('deleted' as const)).catch(asAnswer));
    return count(quorum, request, states);
  });
}

/** Counts only members that still have the lock. A member without an answer says nothing. */
async function count(quorum: Quorum, request: RenewRequest, states: readonly Promise<State>[]) {
  const ballot = new Ballot<Found<string>>(quorum);
  states.forEach((state, index) => void ballot.enter(index, state));
  const state = await majorityFor(quorum, request.name, [ballot, states.length], 'held');
  if (state === 'held') topUp(quorum, request, states);
  else giveUpRest(quorum, request);
  if (typeof state !== 'string') throw state;
  return state;
}

/** A majority has the lock. Asks the other members to take it: they were unreachable, or have restarted. */
function topUp(
  { holds, members }: Quorum,
  { name, owner, leaseTime }: RenewRequest,
  states: readonly Promise<State>[],
): void {
  const hold = holds.get(owner);
  if (hold === undefined) return;
  hold.until = Math.max(hold.until, now() + leaseTime);
  const restore = async (index: number, answer: Promise<State>) => {
    if ((await answer) !== 'deleted' || hold.released.has(name)) return;
    // The hold at this member must end with the others: the renewal may only have asked for the state, and the answer
    // may be late.
    const left = Math.floor(hold.until - now());
    if (left <= 0) return;
    hold.ask(index);
    const request = { name, owner, leaseTime: left, leastToken: hold.fencingTokens.get(name) };
    try {
      await members[index]?.store.acquire(request);
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
function giveUpRest({ holds, releasers }: Quorum, { name, owner, leaseTime }: RenewRequest): void {
  const hold = holds.get(owner);
  hold?.released.add(name);
  const request = { name, owner, fencingToken: hold?.fencingTokens.get(name) };
  const until = Math.max(now() + leaseTime, hold?.until ?? 0);
  releasers.forEach((releaser, index) => {
    // A top-up under way may arrive after the release.
    void releaser.release(request, until, { insist: hold?.isUnsureOf(index) === true });
  });
}
