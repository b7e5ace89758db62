import { clearTimer } from '../lock.runtime.js';
import { idleTimerAt, now } from '../core/deadline.js';
import type { LockClient } from '../core/lock-client.js';

/** The owner that has a lock, and the client that knows what it is called. */
export interface Holder {
  readonly holder: string;
  readonly client: LockClient;
}

/** A lock that a caller waits for. */
interface AwaitedLock {
  readonly name: string;
  readonly client: LockClient;
  inTheWay(): Holder | undefined;
}

/**
 * Tells of a caller that waits for longer than `longWaitTime`.
 * @returns ends it
 */
export function watchLongWait(lock: AwaitedLock, label: string): () => void {
  const { client, name } = lock;
  const askedAt = now();
  let over = false;
  const tell = async (): Promise<void> => {
    const { holder, client: of } = lock.inTheWay() ?? { holder: undefined, client };
    const holderLabel = holder && (await of.labels.find(holder));
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
