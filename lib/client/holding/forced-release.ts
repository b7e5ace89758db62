import type { QueueTerms } from '../../store/lock-store.js';
import type { LockClient } from '../lock-client.js';
import { PLAIN_QUEUE } from '../waiting/local-queue.js';

/**
 * Takes a lock away from its holders.
 * @param mode release only the holders of this side of a read-write lock; undefined for all
 * @param reason is reported to the holders
 */
export async function forceRelease(
  client: LockClient,
  name: string,
  mode: QueueTerms['mode'] | undefined,
  reason: string | undefined,
): Promise<boolean> {
  const { tenures, options, store, events, holdWatch } = client;
  // Read before the request: a waiter of this process may get the lock before the answer comes.
  const held = tenures
    .of(name)
    .filter(({ queue }) => mode === undefined || (queue !== PLAIN_QUEUE && queue?.mode === mode));
  const forced = { by: options.label, reason };
  const released = await store.forceRelease(name, mode, forced);
  if (!released) {
    // The store had no holder, so the holds of this process may have ended before. The store is asked about them.
    for (const { owner } of held) holdWatch.onLost(owner);
    return false;
  }
  events.next({ type: 'force-released', name, reason });
  for (const tenure of held) {
    tenure.forced = forced;
    tenure.lose('deleted');
  }
  return true;
}
