import { asAnswer, type Found } from '../../api/error-guards.js';
import { now } from '../../runtime/clock.js';
import type { ReleaseReply, ReleaseRequest } from '../../store/lock-store.js';
import { Ballot, valueAt } from './ballot.js';
import { majorityFor } from './outcomes.js';
import type { Quorum } from './quorum.js';

/** Releases a lock on all members. It is free when a majority has released it. */
export async function releaseEverywhere(quorum: Quorum, request: ReleaseRequest): Promise<ReleaseReply> {
  const { leaseLimit, holds, releasers, members } = quorum;
  const { name, owner, leaseTime, queue } = request;
  // A lock stays taken for at most the longest hold.
  if ((request.keepFor ?? 0) > leaseLimit.most) await leaseLimit.raise(name, request.keepFor ?? 0);
  const keepFor = request.keepFor && Math.min(request.keepFor, leaseLimit.most);
  const hold = holds.get(owner);
  const fencingToken = request.fencingToken ?? hold?.fencingTokens.get(name);
  const release = { name, owner, fencingToken, keepFor, leaseTime, queue };
  const until = Math.max(now() + quorum.leaseTime, hold?.until ?? 0);
  hold?.released.add(name);
  const ballot = new Ballot<Found<string>>(quorum);
  const asked = [...members.entries()].filter(([index]) => hold?.mayBeHeldBy(index) !== false);
  const heard = asked.map(([index, { store }]) =>
    ballot.enter(index, store.release(release).catch(asAnswer)),
  );
  const reply = await majorityFor(quorum, name, [ballot, asked.length], 'released');
  if (hold?.released.size === hold?.fencingTokens.size) holds.delete(owner);
  // A member without an answer, or with an older request under way, gets the release until the lease has ended.
  const repeat = (index: number) => {
    const insist = hold?.isUnsureOf(index) === true;
    if (insist || valueAt(ballot.answers, index) === undefined)
      void releasers[index]?.release(release, until, { insist });
  };
  asked.forEach(([index], n) => {
    if (ballot.answers[index] === undefined)
      void heard[n]?.then(() => {
        repeat(index);
      });
    else repeat(index);
  });
  if (typeof reply !== 'string') throw reply;
  return reply;
}
