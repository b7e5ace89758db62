import type { Waiter } from './waiter.js';
import type { Busy } from './waiting.js';

const NONE: ReadonlySet<Waiter> = new Set();

/**
 * The waiters of a local queue, in the order of arrival. Nothing that a new waiter asks for looks at the others, because
 * there may be 50,000 of them.
 */
export abstract class Waiters {
  /** Made for the first waiter: most queues have a hold and no waiter. */
  private members: Set<Waiter> | undefined;
  /** The members that take the next answer as their last. */
  private hurried: Set<Waiter> | undefined;
  /** The number of members that only ask. */
  private asking = 0;
  /** Called when a waiter comes and when it goes, for the number of callers in all queues. */
  protected abstract count(waiter: Waiter, change: 1 | -1): void;

  protected get waiters(): ReadonlySet<Waiter> {
    return this.members ?? NONE;
  }

  protected add(waiter: Waiter): void {
    (this.members ??= new Set()).add(waiter);
    this.count(waiter, 1);
    if (waiter.request.waitTime === 0) this.asking++;
    if (waiter.impatient) this.hurry(waiter);
  }

  /** The waiter takes the next answer as its last. */
  protected hurry(waiter: Waiter): void {
    waiter.impatient = true;
    (this.hurried ??= new Set()).add(waiter);
  }

  get length(): number {
    return this.waiters.size;
  }

  /**
   * The number of waiters, without callers that only ask. A caller counts until it has its answer, even after its wait
   * time.
   */
  get waiting(): number {
    return this.length - this.asking;
  }

  /** The begin of the longest wait, on the monotonic clock; undefined without waiters. */
  get waitingSince(): number | undefined {
    for (const { request, arrivedAt } of this.waiters) if (request.waitTime > 0) return arrivedAt;
    return undefined;
  }

  /** Whether the queue has waiters, and not only callers that ask once. */
  get wait(): boolean {
    return this.length > (this.hurried?.size ?? 0);
  }

  protected get hasHurried(): boolean {
    return this.hurried !== undefined;
  }

  protected get head(): Waiter | undefined {
    // Mostly there is no waiter, and this makes no iterator.
    if (this.members !== undefined) for (const waiter of this.members) return waiter;
    return undefined;
  }

  /** Answers the callers that asked before `since` and no longer wait. */
  protected refuseImpatient(since: number, answer: Busy | Error): void {
    for (const waiter of this.hurried ?? NONE) if (waiter.arrivedAt <= since) waiter.refuse(answer);
  }

  protected remove(waiter: Waiter): void {
    if (this.members?.delete(waiter) !== true) return;
    this.count(waiter, -1);
    if (this.members.size === 0) this.members = undefined;
    if (waiter.request.waitTime === 0) this.asking--;
    this.hurried?.delete(waiter);
    if (this.hurried?.size === 0) this.hurried = undefined;
  }
}
