import { now } from '../../runtime/clock.js';
import type { Mode } from './memory-queue.js';

export interface MemoryHold {
  readonly mode: Mode;
  expiresAt: number;
  readonly since: number;
  readonly fencingToken: number;
}

/** The holds of one lock, by owner, each with a deadline of its own. */
export class MemoryHolders {
  private readonly holds = new Map<string, MemoryHold>();
  /** The last exclusive owner. Thousands of readers may hold the lock, so they are not searched for a writer. */
  private writer: string | undefined;
  /** No hold ends before this. */
  private firstEnd = Infinity;

  get size(): number {
    return this.holds.size;
  }

  get owners(): string[] {
    return [...this.holds.keys()];
  }

  [Symbol.iterator](): Iterator<[string, MemoryHold]> {
    return this.holds.entries();
  }

  get(owner: string): MemoryHold | undefined {
    return this.holds.get(owner);
  }

  put(owner: string, hold: MemoryHold): void {
    this.holds.set(owner, hold);
    this.firstEnd = Math.min(this.firstEnd, hold.expiresAt);
    if (hold.mode === 'exclusive') this.writer = owner;
  }

  delete(owner: string): void {
    this.holds.delete(owner);
  }

  dropExpired(): void {
    const at = now();
    if (at < this.firstEnd) return;
    this.firstEnd = Infinity;
    for (const [owner, { expiresAt }] of this.holds) {
      if (expiresAt <= at) this.holds.delete(owner);
      else this.firstEnd = Math.min(this.firstEnd, expiresAt);
    }
  }

  admits(mode: Mode, capacity: number, ownWriteHold?: string): boolean {
    if (mode === 'exclusive') return this.size === 0;
    if (this.size >= capacity) return false;
    const { writer } = this;
    return writer === undefined || writer === ownWriteHold || !this.holds.has(writer);
  }

  /** The hold whose end lets such a request in: the last one for an exclusive request. */
  inTheWay(mode: Mode): [deadline: number, owner: string | undefined] {
    const byDeadline = [...this.holds].sort(([, a], [, b]) => a.expiresAt - b.expiresAt);
    const [owner, hold] = byDeadline.at(mode === 'exclusive' ? -1 : 0) ?? [];
    return [hold?.expiresAt ?? now(), owner];
  }
}
