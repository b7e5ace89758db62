import type { QueueTerms } from '../../store/lock-store.js';
import { TransientMap } from '../../store/transient-map.js';
import type { Tenure, TenureUser } from './tenure.js';
import type { LocalQueue } from '../waiting/local-queue.js';

/** The tenures of this process, the oldest first, each with the queue that keeps it. */
export class Tenures {
  private readonly queues = new TransientMap<Tenure, LocalQueue>();

  get size(): number {
    return this.queues.size;
  }

  get oldest(): Tenure | undefined {
    for (const tenure of this.queues.keys()) return tenure;
    return undefined;
  }

  /** A copy, so that the caller may end tenures. */
  get all(): Tenure[] {
    return [...this.queues.keys()];
  }

  add(tenure: Tenure, queue: LocalQueue): void {
    this.queues.set(tenure, queue);
  }

  queueOf(tenure: Tenure): LocalQueue | undefined {
    return this.queues.get(tenure);
  }

  remove(tenure: Tenure): void {
    this.queues.delete(tenure);
  }

  *users(): Generator<TenureUser> {
    for (const { user } of this.queues.keys()) if (user !== undefined) yield user;
  }

  of(name: string): Tenure[] {
    return this.all.filter((tenure) => tenure.name === name);
  }

  /** Whether this process also holds the other side of the read-write lock. */
  hasOtherMode(name: string, { kind, mode }: QueueTerms): boolean {
    for (const { name: held, queue } of this.queues.keys()) {
      if (held === name && queue?.kind === kind && queue.mode !== mode) return true;
    }
    return false;
  }

  /** The last token of a lock that this process holds. Hand-offs increase it without a message to the store. */
  lastToken(name: string): number | undefined {
    let last: number | undefined;
    for (const tenure of this.queues.keys()) {
      if (tenure.name === name) last = Math.max(last ?? 0, tenure.fencingToken);
    }
    return last;
  }

  /** As `lastToken`, for several locks in one pass, because a process may have many holds. */
  lastTokens(names: ReadonlySet<string>): ReadonlyMap<string, number> {
    const tokens = new Map<string, number>();
    for (const { name, fencingToken } of this.queues.keys()) {
      if (names.has(name)) tokens.set(name, Math.max(tokens.get(name) ?? 0, fencingToken));
    }
    return tokens;
  }
}
