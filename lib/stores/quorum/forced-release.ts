import type { Asker } from '../../api/asker.js';
import type { StoredLock } from '../../store/lock-store.js';
import { type Answer, tally, valuesOf } from './ballot.js';
import { marginOf } from './majority-acquisition.js';
import { greatestToken, majorityState } from './majority-state.js';
import type { MemberStore } from './member.js';
import { askMajority } from './outcomes.js';
import type { Quorum } from './quorum.js';

/** Most tokens that local hand-offs may have given beyond the token on the nodes: one per µs. */
const HANDED_ON = 1_000_000;
/** The same for a token that is ahead of the clocks, for some seconds at most, with one hand-off per 10 µs. */
const HANDED_ON_AHEAD = 100_000;

/**
 * Releases a lock by force on all members. Later tokens are still greater than all earlier ones: each member learns a
 * token before it releases its hold.
 */
export async function forceRelease(quorum: Quorum, name: string, asker: Asker | undefined): Promise<boolean> {
  const states = await askMajority(quorum, name, (store) => store.inspect(name));
  const known = majorityState(states);
  // Even without a majority that holds the lock now: the owner got its token from one.
  const fencingToken = tokenBeyond(quorum, greatestToken(states));
  let isOver = false;

  const releaseAt = async (store: MemberStore, state: Answer<StoredLock | null>): Promise<boolean> => {
    if ('error' in state) throw state.error;
    if (state.value === null) return false;
    const [holder] = state.value.holders;
    if (isLease(holder) && fencingToken !== undefined) {
      // Does not shorten a hold. If the owner has released the lock meanwhile, the hold that this creates ends at once.
      const telling = { name, owner: holder.owner, leaseTime: 1, leastToken: fencingToken };
      const { granted } = await store.acquire(telling);
      // A refusal means another owner. After a late answer, another owner may hold the lock, too.
      if (!granted || isOver) return false;
    }
    return await store.forceRelease(name, undefined, asker);
  };

  const answers = await askMajority(
    quorum,
    name,
    (store, index) => states[index] && releaseAt(store, states[index]),
  );
  isOver = true;
  // By the time that a silent member runs again, another owner may hold the lock. So only the owner's hold is released there.
  answers.forEach((answer, index) => {
    if (answer !== undefined && 'value' in answer) return;
    const [state] = valuesOf([states[index]]);
    const [holder] = (state === undefined ? known : state)?.holders ?? [];
    if (!isLease(holder)) return;
    const lasts = Math.max(holder.remainingTime, quorum.leaseTime);
    quorum.giveBack(index, { name, owner: holder.owner, fencingToken }, lasts, undefined);
  });
  return tally(answers, (isReleased) => isReleased) > 0;
}

/** Whether the hold ends by itself. A hold of another library may have no end. */
const isLease = <H extends { readonly remainingTime: number }>(holder: H | undefined): holder is H =>
  holder !== undefined && holder.remainingTime < Infinity;

/** A token that is not less than any token given under a hold; see rule 6 in docs/design/redlock.md. */
function tokenBeyond({ charters, leaseTime }: Quorum, last: number | undefined): number | undefined {
  if (last === undefined) return undefined;
  const margin = marginOf(Math.max(leaseTime, charters.numbers?.longest ?? 0));
  const latest = (charters.time ?? Infinity) + margin;
  return Math.ceil(Math.max(last + HANDED_ON_AHEAD, Math.min(last + margin + HANDED_ON, latest)));
}
