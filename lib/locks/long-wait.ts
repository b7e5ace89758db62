import { clearTimer } from '../runtime/runtime.js';
import { idleTimerAt, now } from '../client/holding/deadline.js';
import type { ScopedLock } from './scoped-lock.js';

/**
 * Reports a caller that waits longer than `longWaitTime`.
 * @returns a function that ends the watch
 */
export function watchLongWait(lock: ScopedLock, label: string): () => void {
  const { client, name } = lock;
  const askedAt = now();
  let over = false;
  const tell = async (): Promise<void> => {
    const busy = lock.members.find((member) => member.client.callers.inTheWay(member.name) !== undefined);
    const holder = busy?.client.callers.inTheWay(busy.name);
    const holderLabel = holder && (await busy?.client.labels.find(holder));
    if (over) return;
    const waited = Math.round(now() - askedAt);
    client.events.next({ type: 'waiting-long', name, label, waited, holder, holderLabel });
  };
  const timer = idleTimerAt(askedAt + client.options.longWaitTime, () => void tell());
  return () => {
    over = true;
    clearTimer(timer);
  };
}
