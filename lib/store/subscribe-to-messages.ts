import type { LockStore, Subscription } from './lock-store.js';
import type { QueueMessage } from './queue-messages.js';

/** Subscribes to all that a store tells one client. Undefined for a store that tells nothing. */
export function subscribeToMessages(
  store: Pick<LockStore, 'queues' | 'subscribeToLosses'>,
  client: string,
  onMessage: (message: QueueMessage) => void,
): Promise<Subscription> | undefined {
  return store.queues === undefined
    ? store.subscribeToLosses?.(client, onMessage)
    : store.queues.subscribe(client, onMessage);
}
