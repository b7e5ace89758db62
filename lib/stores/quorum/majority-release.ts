import { asAnswer, type Found } from '../../api/error-guards.js';
import { now } from '../../runtime/clock.js';
import type { ReleaseReply, ReleaseRequest } from '../../store/lock-store.js';
import { type Answers, Ballot, tally } from './ballot.js';
import { noMajority, outcomesOf, whyNotHeld } from './outcomes.js';
import type { Quorum } from './quorum.js';

type Replies = Answers<Found<ReleaseReply>>;

/** Releases a lock on all members. It is free when a majority has released it. */
export async function releaseEverywhere(quorum: Quorum, request: ReleaseRequest): Promise<ReleaseReply> {
  const { leaseLimit, holds, releasers, needed, members } = quorum;
  const { name, owner, leaseTime, queue } = request;
  // A lock stays taken for at most the longest hold.
  if ((request.keepFor ?? 0) > leaseLimit.most) await leaseLimit.isAllowed(request.keepFor ?? 0);
  const keepFor = request.keepFor && Math.min(request.keepFor, leaseLimit.most);
  const hold = holds.get(owner);
  const fencingToken = request.fencingToken ?? hold?.fencingTokens.get(name);
  const release = { name, owner, fencingToken, keepFor, leaseTime, queue };
  const until = Math.max(now() + quorum.leaseTime, hold?.until ?? 0);
  hold?.released.add(name);
  const ballot = new Ballot<Found<ReleaseReply>>(quorum);
  const asked = members.map(({ store }, index) =>
    hold?.mayBeHeldBy(index) === false
      ? undefined
      : ballot.enter(index, store.release(release).catch(asAnswer)),
  );
  const isFreed = (cast: Replies) => tally(cast, (reply) => reply === 'released') >= needed;
  const others = asked.filter((each) => each === undefined).length;
  const isLost = (cast: Replies) =>
    tally(cast, (reply) => reply !== 'released') + others > members.length - needed;
  const answers = await ballot.until((cast) => (isFreed(cast) || isLost(cast) ? 'decided' : 'open'));
  if (!isFreed(answers) && !isLost(answers)) throw noMajority(name, outcomesOf(members, answers), 'unknown');
  const reason = isFreed(answers) ? 'released' : whyNotHeld(answers);
  if (hold?.released.size === hold?.fencingTokens.size) holds.delete(owner);
  // A member without an answer, or with an older request under way, gets the release until the lease has ended.
  const repeat = (index: number) => {
    const insist = hold?.isUnsureOf(index) === true;
    const answer = answers[index];
    if (insist || (answer !== undefined && 'error' in answer))
      void releasers[index]?.release(release, until, { insist });
  };
  asked.forEach(
    (heard, index) =>
      void heard?.then(() => {
        repeat(index);
      }),
  );
  if (typeof reason !== 'string') throw reason;
  return reason;
}
