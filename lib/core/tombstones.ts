import type { ReleaseRequest } from '../stores/lock-store.js';

/** The last ones: those who may still be in the queue of a store that has gone back by a moment. */
const REMEMBERED = 10_000;

/**
 * Those who have left their place in a queue of the store, or what they got there. A replica that has taken over may
 * not know of it and call them up again, and each would keep the lock from the living for as long as a claim lasts.
 */
export class Tombstones {
  /** By owner, in the order in which they left. */
  private readonly departed = new Map<string, ReleaseRequest>();

  add(departed: ReleaseRequest): void {
    this.departed.set(departed.owner, departed);
    if (this.departed.size <= REMEMBERED) return;
    for (const earliest of this.departed.keys()) {
      this.departed.delete(earliest);
      return;
    }
  }

  /** What tells the store that the owner has left; undefined when it has not, or too long ago. */
  of(owner: string): ReleaseRequest | undefined {
    return this.departed.get(owner);
  }
}
