import type { StoredLock } from '../../store/lock-store.js';
import type { Blockers } from './wait-graph.js';

/** What a wait wants of its lock. */
export interface Wanted {
  readonly mode: 'exclusive' | 'shared';
  /** Of a semaphore; undefined for the other kinds. */
  readonly permits: number | undefined;
}

const NONE: Blockers = { owners: [], rule: 'one' };

/** The holds that a wait for a lock ends with. None where the lock is about to be granted. */
export function blockersOf(stored: StoredLock | null, { mode, permits }: Wanted): Blockers {
  const holders = stored?.holders ?? [];
  const owners = holders.map(({ owner }) => owner);
  if (permits !== undefined) return owners.length < permits ? NONE : { owners, rule: 'all' };
  if (mode === 'exclusive') return { owners, rule: 'one' };
  const writers = holders.filter((holder) => holder.mode === 'exclusive');
  if (writers.length > 0) return { owners: writers.map(({ owner }) => owner), rule: 'one' };
  // A reader beside readers waits behind a writer of the queue, and so for all that the writer waits for.
  const isBehindWriter = stored?.queue.some((entry) => entry.mode === 'exclusive') === true;
  return isBehindWriter ? { owners, rule: 'one' } : NONE;
}
