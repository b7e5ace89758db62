import type { Waiter } from './waiter.js';
import type { Busy } from './waiting.js';

const NONE: ReadonlySet<Waiter> = new Set();

/** The waiters of a local queue, in the order of arrival. */
export abstract class Waiters {
  /** Made for the first waiter: most queues have a hold and no waiter. */
  private members: Set<Waiter> | undefined;

  protected get waiters(): ReadonlySet<Waiter> {
    return this.members ?? NONE;
  }

  protected add(waiter: Waiter): void {
    (this.members ??= new Set()).add(waiter);
  }

  get length(): number {
    return this.waiters.size;
  }

  /**
   * The number of waiters, without callers that only ask. A caller counts until it has its answer, even after its wait
   * time.
   */
  get waiting(): number {
    let waiting = 0;
    for (const { request } of this.waiters) if (request.waitTime > 0) waiting++;
    return waiting;
  }

  /** The begin of the longest wait, on the monotonic clock; undefined without waiters. */
  get waitingSince(): number | undefined {
    for (const { request, arrivedAt } of this.waiters) if (request.waitTime > 0) return arrivedAt;
    return undefined;
  }

  /** Whether the queue has waiters, and not only callers that ask once. */
  get wait(): boolean {
    return this.hasWaiter({ impatient: false });
  }

  protected get head(): Waiter | undefined {
    // Mostly there is no waiter, and this makes no iterator.
    if (this.members !== undefined) for (const waiter of this.members) return waiter;
    return undefined;
  }

  /** Answers the callers that asked before `since` and no longer wait. */
  protected refuseImpatient(since: number, answer: Busy | Error): void {
    for (const waiter of this.waiters) {
      if (waiter.impatient && waiter.arrivedAt <= since) waiter.refuse(answer);
    }
  }

  protected hasWaiter({ impatient }: { readonly impatient: boolean }): boolean {
    for (const waiter of this.waiters) if (waiter.impatient === impatient) return true;
    return false;
  }

  protected remove(waiter: Waiter): void {
    this.members?.delete(waiter);
    if (this.members?.size === 0) this.members = undefined;
  }
}
