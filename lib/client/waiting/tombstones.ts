import type { ReleaseRequest } from '../../store/lock-store.js';
import { oldestBeyond } from '../../store/oldest-beyond.js';

/** Number of the last owners that are remembered. A store that has lost its last writes may have them in its queue. */
const REMEMBERED = 10_000;

/**
 * Owners that have left their entry in a store queue, or the hold that they got from it. After a failover, the new
 * primary may not know that, and grant the lock to such an owner. Each such grant would keep living waiters out for the
 * length of a claim.
 */
export class Tombstones {
  /** By owner, in the order of leaving. */
  private readonly departed = new Map<string, ReleaseRequest>();

  add(departed: ReleaseRequest): void {
    this.departed.set(departed.owner, departed);
    const earliest = oldestBeyond(REMEMBERED, this.departed);
    if (earliest !== undefined) this.departed.delete(earliest);
  }

  /** The request that tells the store that the owner has left. Undefined if the owner has not left, or is forgotten. */
  of(owner: string): ReleaseRequest | undefined {
    return this.departed.get(owner);
  }
}
