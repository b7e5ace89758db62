import assert from 'node:assert/strict';
import type { QueueMessage } from '../../port/lock-store.js';
import { assertMessage, type Stage, until } from './stage.js';

/** Collects the messages of the store to the client. */
export async function hear(stage: Stage, client: string) {
  const heard: QueueMessage[] = [];
  const faults: unknown[] = [];
  const subscription = await stage.other.subscribeToQueue(client, (message) => {
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
