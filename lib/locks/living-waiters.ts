import type { StoredLock } from '../core/lock-client.js';

type Queue = StoredLock['queue'];

/**
 * Without the entries of processes that the store takes for dead. They stay in the queue until their turn comes: where the holder
 * has died as well, until another caller asks for the lock.
 */
export const livingOf = (queue: Queue): Queue => queue.filter(({ dead }) => dead !== true);
