import type { BoardLock } from './wire.js';

/** Of so many locks the queues are looked at: each is a question to the store. */
const MOST = 64;

/** The names of the locks with the longest waits, the longest first. @param begunBy only waits that had begun by then, if known */
export const longestWaits = (locks: readonly BoardLock[], begunBy = Infinity): readonly string[] =>
  locks
    .filter(({ waiting, waitingSince }) => waiting > 0 && (waitingSince ?? 0) <= begunBy)
    .sort((a, b) => (a.waitingSince ?? 0) - (b.waitingSince ?? 0))
    .slice(0, MOST)
    .map(({ name }) => name);
