import { clearTimer } from '../lock.runtime.js';
import { idleTimerAt, now } from '../core/deadline.js';
import type { ScopedLock } from './scoped-lock.js';
import type { StoreLock } from './store-lock.js';

/**
 * Tells of a caller that waits for longer than `longWaitTime`.
 * @returns ends it
 */
export function watchLongWait(lock: ScopedLock, label: string): () => void {
  const { client, name } = lock;
  const askedAt = now();
  let over = false;
  const tell = async (): Promise<void> => {
    const isKnown = (member: StoreLock) => member.client.callers.inTheWay(member.name) !== undefined;
    const busy = lock.members.find(isKnown);
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
