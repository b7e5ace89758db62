import type { QueueTerms } from '../../store/lock-store.js';
import { CLAIM } from '../../store/queue-messages.js';

/** Keeps the waiters further back from polling all at once, ms per entry. */
const SPREAD = 10;
/** The most that this adds while a claim is in the way, ms. */
const WIDEST = 250;

export type Mode = QueueTerms['mode'];

export interface QueueEntry {
  readonly owner: string;
  readonly mode: Mode;
  /** Microseconds since the epoch. */
  readonly arrival: number;
  /** ms */
  readonly leaseTime: number;
}

/** The waiters for one lock, in the order of their arrival. Entries may leave during an iteration. */
export class MemoryQueue {
  private entries = new Map<string, QueueEntry>();
  /** The one with the latest arrival, even if it has left. */
  private last: QueueEntry | undefined;

  get length(): number {
    return this.entries.size;
  }

  get first(): QueueEntry | undefined {
    for (const entry of this.entries.values()) return entry;
    return undefined;
  }

  [Symbol.iterator](): Iterator<QueueEntry> {
    return this.entries.values();
  }

  /**
   * Takes an entry: the one that the owner has, or one at the end.
   * @param before the arrival that the owner was told before, whose place it takes
   * @param at the present moment, microseconds
   * @returns the arrival
   */
  take(entry: Omit<QueueEntry, 'arrival'>, before: number | undefined, at: number): number {
    const { owner, mode, leaseTime } = entry;
    const standing = this.entries.get(owner);
    if (standing !== undefined) return standing.arrival;
    const latest = this.length === 0 ? 0 : (this.last?.arrival ?? 0);
    const arrival = before ?? Math.max(latest + 1, at);
    const taken = { owner, mode, arrival, leaseTime };
    this.entries.set(owner, taken);
    if (arrival > latest) this.last = taken;
    else this.entries = new Map([...this.entries].sort(([, a], [, b]) => a.arrival - b.arrival));
    return arrival;
  }

  leave(owner: string): void {
    this.entries.delete(owner);
  }

  /** 0 also for an owner without an entry. */
  rankOf(owner: string): number {
    if (!this.entries.has(owner)) return 0;
    if (this.last?.owner === owner) return this.length - 1;
    return [...this.entries.keys()].indexOf(owner);
  }

  /** The first waiter of each client but this one, with its place in the queue. */
  firstOfOthers(client: string): readonly { readonly rank: number; readonly owner: string }[] {
    const seen = new Set([client]);
    return [...this.entries.keys()]
      .map((owner, rank) => ({ rank, owner }))
      .filter(({ owner }) => seen.size < seen.add(clientOf(owner)).size);
  }
}

/** The client of an owner. */
export const clientOf = (owner: string): string => owner.slice(0, owner.lastIndexOf(':'));

/** When a waiter polls, ms from now, while the hold in its way ends in `left` ms: the same rule as in the Redis scripts. */
export function lookAfter(left: number, rank: number): number {
  if (rank === 0) return left;
  return left <= CLAIM ? left + Math.min(rank * SPREAD, WIDEST) : left + CLAIM + rank * SPREAD;
}
