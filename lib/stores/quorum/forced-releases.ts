import type { Asker } from '../../api/asker.js';
import { now } from '../../runtime/clock.js';
import type { LockStore, StoredLock } from '../../store/lock-store.js';
import { askMembers, type Cast, outcomesOf } from './ask-members.js';
import { type NodeAnswer, tally } from './ballot.js';
import { marginOf, noMajority } from './majority-acquisition.js';
import { greatestToken, majorityState } from './majority-state.js';
import type { Quorum } from './quorum.js';

/** Most tokens that local hand-offs may have given beyond the token on the nodes: one per µs. */
const HANDED_ON = 1_000_000;
/**
 * The same for a token that is ahead of the clocks. That state lasts for some seconds at most, with one hand-off per 10
 * µs.
 */
const HANDED_ON_AHEAD = 100_000;

/** Whether a member knows the token, or another owner has the lock there. */
type Told = 'told' | 'taken';
const TOLD = { value: 'told' } as const;

/** Releases locks by force on all members. Later tokens are still greater than all earlier ones. */
export class ForcedReleases {
  constructor(private readonly quorum: Quorum) {}

  async release(name: string, asker: Asker | undefined): Promise<boolean> {
    const { releasers } = this.quorum;
    const states = await askMembers(this.quorum, name, (store) => store.inspect(name));
    const known = majorityState(states);
    // Even without a majority that holds the lock now: the owner got its token from one.
    const fencingToken = this.tokenBeyond(greatestToken(states));
    const told = await this.tellToken(name, states, fencingToken);
    // A silent member executes the forced release when it runs again, and another owner may hold the lock by then. A
    // member that holds the lock and does not know the token would give smaller tokens. So both get a release of the
    // present owner's hold instead, with the token, for as long as that hold lasts.
    const isTold = (index: number) => tally([told[index]], (answer) => answer === 'told') === 1;
    const { members, needed } = this.quorum;
    if (tally(told, (answer) => answer === 'told') < needed)
      throw noMajority(name, outcomesOf(members, told), { effect: 'unknown' });
    // If the forced release does not arrive, a release of the owner's hold replaces it.
    const takeBack = (index: number) => {
      const [holder] = stateOf(states[index])?.holders ?? [];
      if (holder === undefined || holder.remainingTime === Infinity) return;
      const until = now() + Math.max(holder.remainingTime, this.quorum.leaseTime);
      void releasers[index]?.release({ name, owner: holder.owner, fencingToken }, until);
    };
    for (const { owner, remainingTime } of known?.holders ?? []) {
      const until = now() + Math.max(remainingTime, this.quorum.leaseTime);
      releasers.forEach((releaser, index) => {
        if (!isTold(index)) void releaser.release({ name, owner, fencingToken }, until);
      });
    }
    // A member without a hold has not learned the token. It may have granted the lock since, and that hold stays.
    const letsGo = states.map((answer, index) => isTold(index) && stateOf(answer) !== null);
    const others = members.filter((_, index) => isTold(index) && letsGo[index] !== true).length;
    if (!letsGo.includes(true)) return false;
    const take = async (store: LockStore) => {
      try {
        return await store.forceRelease(name, undefined, asker);
      } catch (error) {
        takeBack(members.findIndex((member) => member.store === store));
        throw error;
      }
    };
    const released = await askMembers(
      this.quorum,
      name,
      take,
      (index) => letsGo[index] === true,
      needed - others,
    );
    return tally(released, (held) => held) > 0;
  }

  /**
   * A token that is not less than any token given under a hold. A silent member may have given a greater token than the
   * other members know, by the margin that acquisitions leave between them. But tokens are times of the members'
   * clocks, which lie within the same margin, and a majority knows any token beyond these. So repeated forced releases
   * do not drive the tokens further and further ahead of the clocks, which are all that a restarted member has.
   */
  private tokenBeyond(last: number | undefined): number | undefined {
    if (last === undefined) return undefined;
    const { charters, leaseTime } = this.quorum;
    // The margin of the service with the longest lease.
    const margin = marginOf(Math.max(leaseTime, charters.numbers?.longest ?? 0));
    const latest = (charters.time ?? Infinity) + margin;
    return Math.ceil(Math.max(last + HANDED_ON_AHEAD, Math.min(last + margin + HANDED_ON, latest)));
  }

  /**
   * Before the release, each member that holds the lock learns the token, so that its next token is greater. The owner
   * may release the lock before this request arrives, however late. So the request asks for the shortest lease: it does
   * not shorten a hold, and a hold that it creates ends at once.
   * @returns the answers; a member without a hold need not know the token
   */
  private async tellToken(
    name: string,
    states: Cast<StoredLock | null>,
    leastToken: number | undefined,
  ): Promise<Cast<Told>> {
    const { members, presence } = this.quorum;
    const telling = states.map(async (answer, index): Promise<NodeAnswer<Told> | undefined> => {
      if (answer === undefined || 'error' in answer) return answer;
      const [holder] = answer.value?.holders ?? [];
      const member = members[index];
      if (member === undefined || holder === undefined || holder.remainingTime === Infinity) return TOLD;
      if (leastToken === undefined) return TOLD;
      const asked = member.store.acquire({ name, owner: holder.owner, leaseTime: 1, leastToken });
      const reply = await presence.unlessAbsent(index, presence.observe(index, asked));
      // Undefined for a member that is silent now. A refusal means another owner.
      return reply && { value: reply.granted ? 'told' : 'taken' };
    });
    return await Promise.all(telling.map((answer) => answer.catch((error: unknown) => ({ error }))));
  }
}

/** Undefined for a member without an answer. */
const stateOf = (answer: Cast<StoredLock | null>[number]): StoredLock | null | undefined =>
  answer !== undefined && 'value' in answer ? answer.value : undefined;
