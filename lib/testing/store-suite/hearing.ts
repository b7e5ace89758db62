import assert from './assert.js';
import type { LockStore, Subscription } from '../../store/lock-store.js';
import type { QueueMessage } from '../../store/queue-messages.js';
import { subscribeToMessages } from '../../store/subscribe-to-messages.js';
import { assertMessage, type Stage, until } from './stage.js';

/** Subscribes to the messages of the store to one client. */
export async function listenTo(
  store: LockStore,
  client: string,
  onMessage: (message: QueueMessage) => void,
): Promise<Subscription> {
  const subscription = await subscribeToMessages(store, client, onMessage);
  assert.ok(subscription !== undefined, 'the store tells its clients nothing');
  return subscription;
}

/** Collects the messages of the store to the client. */
export async function hear(stage: Stage, client: string) {
  const heard: QueueMessage[] = [];
  const faults: unknown[] = [];
  const subscription = await listenTo(stage.other, client, (message) => {
    heard.push(message);
    try {
      assertMessage(message, client);
    } catch (fault) {
      faults.push(fault);
    }
  });
  assert.ok(subscription.active);
  const granted = (owner: string) =>
    until(() => heard.some((message) => message.type === 'granted' && message.owner === owner));
  return {
    heard,
    granted,
    close: () => {
      subscription.close();
      for (const fault of faults) throw fault;
    },
  };
}
