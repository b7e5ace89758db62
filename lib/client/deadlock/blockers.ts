import type { StoredLock } from '../../store/lock-store.js';
import type { Blockers } from './wait-graph.js';

/** The access to a lock that a wait asks for. */
export interface Wanted {
  readonly mode: 'exclusive' | 'shared';
  /** Set for a semaphore only. */
  readonly permits: number | undefined;
}

const NONE: Blockers = { owners: [], rule: 'one' };

/** The holds that must end before the lock is granted to a wait. Empty if the store is about to grant it. */
export function blockersOf(stored: StoredLock | null, { mode, permits }: Wanted): Blockers {
  const holders = stored?.holders ?? [];
  const owners = holders.map(({ owner }) => owner);
  if (permits !== undefined) return owners.length < permits ? NONE : { owners, rule: 'all' };
  if (mode === 'exclusive') return { owners, rule: 'one' };
  const writers = holders.filter((holder) => holder.mode === 'exclusive');
  if (writers.length > 0) return { owners: writers.map(({ owner }) => owner), rule: 'one' };
  // A new reader queues behind a waiting writer, so it also waits for all holds that the writer waits for.
  const isBehindWriter = stored?.queue.some((entry) => entry.mode === 'exclusive') === true;
  return isBehindWriter ? { owners, rule: 'one' } : NONE;
}
