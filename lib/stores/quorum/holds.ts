import {
  asAnswer,
  type Found,
  isLockKindMismatchError,
  isLockUnavailableError,
} from '../../api/error-guards.js';
import { now } from '../../runtime/clock.js';
import { afterInput } from '../../runtime/runtime.js';
import type { HoldState, ReleaseReply, ReleaseRequest, RenewRequest } from '../../store/lock-store.js';
import { TransientMap } from '../../store/transient-map.js';
import { type Answer, Ballot } from './ballot.js';
import type { MemberStore } from './member.js';
import { majorityFor } from './outcomes.js';
import type { Quorum } from './quorum.js';

/** The record of one owner's locks on the members. */
export class Hold {
  fencingTokens: readonly number[] = [];
  /** The names that the owner has released. No request may take them again. */
  readonly released = new Set<string>();
  /** By member, whether it has granted a request. */
  private readonly granted: boolean[] = [];
  /** By member, the number of requests without an answer. Such a request may arrive after a release or a later request. */
  private readonly unanswered: number[] = [];
  /** The moment by which the members have forgotten all holds, ms on the monotonic clock. */
  until: number;

  constructor(
    readonly names: readonly string[],
    leaseTime: number,
  ) {
    this.until = now() + leaseTime;
  }

  tokenOf(name: string): number | undefined {
    return this.fencingTokens[this.names.indexOf(name)];
  }

  ask(index: number): void {
    this.unanswered[index] = (this.unanswered[index] ?? 0) + 1;
  }

  /** Called after an answer, or if the request was certainly not sent. */
  answered(index: number, isGranted: boolean): void {
    this.unanswered[index] = (this.unanswered[index] ?? 0) - 1;
    if (isGranted) this.granted[index] = true;
  }

  mayBeHeldBy(index: number): boolean {
    return this.granted[index] === true || this.isUnsureOf(index);
  }

  /** Whether a request without an answer may still take effect. */
  isUnsureOf(index: number): boolean {
    return (this.unanswered[index] ?? 0) > 0;
  }
}

/** By owner. An owner whose lease simply ends sends nothing, so ended holds are removed from time to time. */
export class Holds extends TransientMap<string, Hold> {
  private sweepAt = 1_000;

  override set(owner: string, hold: Hold): void {
    super.set(owner, hold);
    if (this.size < this.sweepAt) return;
    const time = now();
    for (const [key, { until }] of this) if (until < time) this.delete(key);
    this.sweepAt = Math.max(1_000, 2 * this.size);
  }
}

/** A lock is free when a majority has released it. */
export async function releaseEverywhere(quorum: Quorum, request: ReleaseRequest): Promise<ReleaseReply> {
  const { leaseLimit, holds, members } = quorum;
  const { name, owner } = request;
  // The client has asked for this time before the acquisition.
  const keepFor = request.keepFor && Math.min(request.keepFor, leaseLimit.most);
  const hold = holds.get(owner);
  const fencingToken = request.fencingToken ?? hold?.tokenOf(name);
  const release = { name, owner, fencingToken, keepFor };
  hold?.released.add(name);
  const ballot = new Ballot<Found<string>>(quorum);
  // One promise for each node, because each release comes this way.
  const releaseAt = async (store: MemberStore, index: number) => {
    if (hold?.mayBeHeldBy(index) === false) return;
    ballot.ask(index);
    let answer: Answer<Found<string>>;
    try {
      answer = { value: await store.release(release) };
    } catch (error) {
      answer = isLockKindMismatchError(error) ? { value: error } : { error };
    }
    ballot.settle(index, answer);
    // A member without an answer, or with an older request under way, gets the release until the lease has ended.
    const isRepeated = () => 'error' in answer || hold?.isUnsureOf(index) === true;
    if (!isRepeated()) return;
    // The answer to the older request may arrive with this one. Without a majority, the caller repeats the release.
    await new Promise<void>(afterInput);
    if ((await replying.catch(() => undefined)) !== undefined && isRepeated())
      quorum.giveBack(index, release, quorum.leaseTime, hold);
  };
  members.forEach(({ store }, index) => void releaseAt(store, index));
  const replying = majorityFor(quorum, name, ballot, 'released');
  const reply = await replying;
  if (hold?.released.size === hold?.names.length) holds.delete(owner);
  if (typeof reply !== 'string') throw reply;
  return reply;
}

/** A hold lasts while a majority keeps it. */
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

/** The requests to one member are sent together. Only members that still have the lock count. */
function renewals(quorum: Quorum, requests: readonly RenewRequest[]): readonly Promise<HoldState>[] {
  const sent = quorum.members.map(({ store }) => store.renew(requests));
  return requests.map(async (request, n) => {
    const { name, owner, leaseTime } = request;
    const states = sent.map((each) => (each[n] ?? Promise.resolve('deleted' as const)).catch(asAnswer));
    const ballot = new Ballot<Found<string>>(quorum);
    states.forEach((state, index) => void ballot.enter(index, state));
    const state = await majorityFor(quorum, name, ballot, 'held');
    const hold = quorum.holds.get(owner);
    if (state === 'held') {
      if (hold !== undefined) topUp(quorum, request, hold, states);
      return state;
    }
    // Without a release, the members that still have the lock would keep it for a whole lease without an owner.
    hold?.released.add(name);
    const release = { name, owner, fencingToken: hold?.tokenOf(name) };
    for (const index of quorum.members.keys()) quorum.giveBack(index, release, leaseTime, hold);
    if (typeof state !== 'string') throw state;
    return state;
  });
}

/** A majority has the lock. Asks the other members to take it: they were unreachable, or have restarted. */
function topUp(
  { members }: Quorum,
  { name, owner, leaseTime }: RenewRequest,
  hold: Hold,
  states: readonly Promise<Found<HoldState>>[],
): void {
  hold.until = Math.max(hold.until, now() + leaseTime);
  const restore = async (index: number, answer: Promise<Found<HoldState>>) => {
    if ((await answer) !== 'deleted' || hold.released.has(name)) return;
    // The hold at this member must end with the others, however late the answer is.
    const left = Math.floor(hold.until - now());
    if (left <= 0) return;
    hold.ask(index);
    const request = { name, owner, leaseTime: left, leastToken: hold.tokenOf(name) };
    try {
      await members[index]?.store.acquire(request);
      hold.answered(index, true);
    } catch (error) {
      // If the effect is unknown, a later release is repeated.
      if (isLockUnavailableError(error) && error.effect === 'refused') hold.answered(index, false);
    }
  };
  states.forEach((answer, index) => void restore(index, answer).catch(() => undefined));
}
