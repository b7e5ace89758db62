import { setTimer } from '../../runtime/runtime.js';
import type { Subscription } from '../../store/lock-store.js';
import type { LossMessage } from '../../store/queue-messages.js';
import { gather, isMajority } from './ballot.js';
import type { MemberStore } from './member.js';
import { noMajority } from './outcomes.js';
import type { Quorum } from './quorum.js';
import { WakeUp } from './wake-up.js';

/** ms within which the messages of one forced release arrive. */
const APART = 20;

export async function subscribeToReleases(
  quorum: Quorum,
  name: string,
  onWake: () => void,
): Promise<Subscription> {
  const { members, charters } = quorum;
  const wakeUp = new WakeUp(members.length, (index) => charters.votes(index), onWake);
  return await subscribeAll(quorum, name, wakeUp, (store, index, isOpen) =>
    store.subscribeToReleases(name, () => {
      if (isOpen()) wakeUp.tell(index);
    }),
  );
}

/**
 * Each member reports a loss. The client hears of it once, when all messages have arrived. Before that it would still
 * find a majority, and give the lock back to the members that have released it.
 */
export async function subscribeToLosses(
  quorum: Quorum,
  client: string,
  onMessage: (message: LossMessage) => void,
): Promise<Subscription> {
  const lost = new Set<string>();
  return await subscribeAll(quorum, undefined, undefined, (store, _, isOpen) =>
    store.queues.subscribe(client, (message) => {
      if (!isOpen()) return;
      if (message.type === 'missed' || message.type === 'asked') onMessage(message);
      if (message.type !== 'lost' || lost.has(message.owner)) return;
      lost.add(message.owner);
      setTimer(() => {
        lost.delete(message.owner);
        if (isOpen()) onMessage(message);
      }, APART);
    }),
  );
}

/**
 * Subscribes at all members, and succeeds with a majority: an event on a majority of the members then reaches a
 * subscribed one. Messages count only while `isOpen` returns true.
 */
async function subscribeAll(
  quorum: Quorum,
  name: string | undefined,
  receiver: { close(): void } | undefined,
  open: (store: MemberStore, index: number, isOpen: () => boolean) => Promise<Subscription>,
): Promise<Subscription> {
  const subscriptions = new Set<Subscription>();
  let closed = false;
  const close = () => {
    closed = true;
    receiver?.close();
    for (const subscription of subscriptions) subscription.close();
  };
  const subscribe = async (store: MemberStore, index: number) => {
    const subscription = await open(store, index, () => !closed);
    if (closed) subscription.close();
    else subscriptions.add(subscription);
  };
  const answers = await gather(
    quorum,
    ({ store }, index) => subscribe(store, index),
    (told) => (isMajority(told) ? 'decided' : 'open'),
  );
  if (!isMajority(answers)) {
    close();
    throw noMajority(quorum, name, answers, 'refused');
  }
  return {
    get active() {
      return [...subscriptions].filter(({ active }) => active).length >= quorum.needed;
    },
    close,
  };
}
