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
  const wakeUp = new WakeUp(quorum, onWake);
  return await subscribeAll(quorum, name, (store, index) =>
    store.subscribeToReleases(name, () => {
      wakeUp.tell(index);
    }),
  );
}

/** The client hears of a loss when all members have reported it: before that, it would give the lock back to some of them. */
export async function subscribeToLosses(
  quorum: Quorum,
  client: string,
  onMessage: (message: LossMessage) => void,
): Promise<Subscription> {
  const lost = new Set<string>();
  return await subscribeAll(quorum, undefined, (store) =>
    store.queues.subscribe(client, (message) => {
      if (message.type === 'missed' || message.type === 'asked') onMessage(message);
      if (message.type !== 'lost' || lost.has(message.owner)) return;
      lost.add(message.owner);
      setTimer(() => {
        lost.delete(message.owner);
        onMessage(message);
      }, APART);
    }),
  );
}

/** A majority is enough: an event on a majority reaches a subscribed member. After `close`, the client ignores messages. */
async function subscribeAll(
  quorum: Quorum,
  name: string | undefined,
  subscribe: (store: MemberStore, index: number) => Promise<Subscription>,
): Promise<Subscription> {
  const subscriptions = new Set<Subscription>();
  let isClosed = false;
  const close = () => {
    isClosed = true;
    for (const subscription of subscriptions) subscription.close();
  };
  const answers = await gather(
    quorum,
    async ({ store }, index) => {
      const subscription = await subscribe(store, index);
      if (isClosed) subscription.close();
      else subscriptions.add(subscription);
    },
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
