import type { BoardLock } from './wire.js';

/** Of so many locks the queues are looked at: each is a question to the store. */
const MOST = 64;

/** The locks with the longest waits, the longest first. */
export const longestWaits = (locks: readonly BoardLock[]): readonly BoardLock[] =>
  locks
    .filter(({ waiting }) => waiting > 0)
    .sort((a, b) => (a.waitingSince ?? 0) - (b.waitingSince ?? 0))
    .slice(0, MOST);
