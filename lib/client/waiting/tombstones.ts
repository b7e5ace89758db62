import type { ReleaseRequest } from '../../store/lock-store.js';
import { oldestBeyond } from '../../store/oldest-beyond.js';

/** How many are kept: the last owners, which may still be in the queue of a store that has gone back by a moment. */
const REMEMBERED = 10_000;

/**
 * The owners that have left their entry in a store queue, or the hold that they got there. A replica that has taken over
 * may not know of it and grant to such an owner. Each such grant would keep the lock from living waiters for as long as a
 * claim lasts.
 */
export class Tombstones {
  /** By owner, in the order in which they left. */
  private readonly departed = new Map<string, ReleaseRequest>();

  add(departed: ReleaseRequest): void {
    this.departed.set(departed.owner, departed);
    const earliest = oldestBeyond(REMEMBERED, this.departed);
    if (earliest !== undefined) this.departed.delete(earliest);
  }

  /** The request that tells the store that the owner has left. Undefined when it has not left, or too long ago. */
  of(owner: string): ReleaseRequest | undefined {
    return this.departed.get(owner);
  }
}
