import type { Subscription } from '../../store/lock-store.js';
import { type NodeAnswer, decide, tally } from './ballot.js';
import { type Member, type MemberStore, quorumOf } from './member.js';

interface Ways {
  /** Subscribes at one member. Its messages count only while `isOpen` returns true. */
  open(store: MemberStore, index: number, isOpen: () => boolean): Promise<Subscription>;
  close(): void;
  /** The error if too few members accept the subscription. */
  refusal(cast: readonly (NodeAnswer<unknown> | undefined)[]): Error;
}

/**
 * Subscribes at all members, and succeeds with a majority: an event on a majority of the members then reaches a
 * subscribed one.
 */
export async function subscribeAll(members: readonly Member[], ways: Ways): Promise<Subscription> {
  const needed = quorumOf(members.length);
  const subscriptions = new Set<Subscription>();
  let closed = false;
  const close = () => {
    closed = true;
    ways.close();
    for (const subscription of subscriptions) subscription.close();
  };
  const subscribing = members.map(async ({ store }, index) => {
    const subscription = await ways.open(store, index, () => !closed);
    if (closed) subscription.close();
    else subscriptions.add(subscription);
  });
  const decision = await decide(subscribing, (cast) => {
    if (tally(cast) >= needed) return { cast: undefined };
    return cast.includes(undefined) ? undefined : { cast };
  });
  if (decision.cast !== undefined) {
    close();
    throw ways.refusal(decision.cast);
  }
  return {
    get active() {
      return [...subscriptions].filter(({ active }) => active).length >= needed;
    },
    close,
  };
}
