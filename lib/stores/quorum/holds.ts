import { now } from '../../runtime/clock.js';
import { TransientMap } from '../../store/transient-map.js';

/** The record of one owner's locks on the members. */
export class Hold {
  /** The last fencing token of each name. */
  readonly fencingTokens: Map<string, number>;
  /** The names that the owner has released. No request may take them again. */
  readonly released = new Set<string>();
  /** By member, whether it may hold a lock for the owner. */
  private readonly holds: boolean[] = [];
  /** By member, the number of requests without an answer. Such a request may arrive after a release or a later request. */
  private readonly unanswered: number[] = [];
  /** The moment by which the members have forgotten all holds, ms on the monotonic clock. */
  until: number;

  constructor(names: readonly string[], leaseTime: number) {
    this.fencingTokens = new Map(names.map((name) => [name, 0]));
    this.until = now() + leaseTime;
  }

  /** Called before a request that takes a lock at a member. @returns whether the member may hold one already */
  ask(index: number): boolean {
    const before = this.mayBeHeldBy(index);
    this.holds[index] = true;
    this.unanswered[index] = (this.unanswered[index] ?? 0) + 1;
    return before;
  }

  /**
   * Called after an answer, or if the request was certainly not sent.
   * @param holds whether the member may hold a lock after that
   */
  answered(index: number, holds: boolean): void {
    this.unanswered[index] = (this.unanswered[index] ?? 0) - 1;
    this.holds[index] = holds || this.isUnsureOf(index);
  }

  mayBeHeldBy(index: number): boolean {
    return this.holds[index] === true;
  }

  /** Whether a request without an answer may still take effect. */
  isUnsureOf(index: number): boolean {
    return (this.unanswered[index] ?? 0) > 0;
  }
}

/** By owner. An owner whose lease simply ends sends nothing, so ended holds are removed from time to time. */
export class Holds extends TransientMap<string, Hold> {
  private sweepAt = 1_000;

  override set(owner: string, hold: Hold): void {
    super.set(owner, hold);
    if (this.size < this.sweepAt) return;
    const time = now();
    for (const [key, { until }] of this) if (until < time) this.delete(key);
    this.sweepAt = Math.max(1_000, 2 * this.size);
  }
}
