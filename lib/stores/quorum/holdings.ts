import { now } from '../../runtime/clock.js';
import { TransientMap } from '../../store/transient-map.js';

/** The record of one owner's locks on the members. */
export class Holding {
  /** The last fencing token of each name. */
  readonly fencingTokens = new Map<string, number>();
  /** The names that the owner has released. No request may take them again. */
  readonly released = new Set<string>();
  /** By member, whether it may hold a lock for the owner. */
  private readonly holds: boolean[] = [];
  /** By member, the number of requests without an answer. Such a request may arrive after a release or a later request. */
  private readonly unanswered: number[] = [];
  /** The moment by which the members have forgotten all holds, ms on the monotonic clock. */
  until: number;

  constructor(readonly leaseTime: number) {
    this.until = now() + leaseTime;
  }

  /** Called before a request that takes a lock at a member. */
  ask(index: number): void {
    this.holds[index] = true;
    this.unanswered[index] = (this.unanswered[index] ?? 0) + 1;
  }

  /** Called after an answer, or if the request was certainly not sent. */
  answered(index: number): void {
    this.unanswered[index] = (this.unanswered[index] ?? 0) - 1;
  }

  /** As `answered`, if the member has taken nothing and held nothing before. */
  refused(index: number): void {
    this.answered(index);
    this.holds[index] = this.isUnsureOf(index);
  }

  mayBeHeldBy(index: number): boolean {
    return this.holds[index] === true;
  }

  /** Whether a request without an answer may still take effect. */
  isUnsureOf(index: number): boolean {
    return (this.unanswered[index] ?? 0) > 0;
  }

  prolong(leaseTime: number): void {
    this.until = Math.max(this.until, now() + leaseTime);
  }
}

/** By owner. An owner whose lease simply ends sends nothing, so ended holdings are removed from time to time. */
export class Holdings {
  private readonly holdings = new TransientMap<string, Holding>();
  private sweepAt = 1_000;

  get(owner: string): Holding | undefined {
    return this.holdings.get(owner);
  }

  set(owner: string, holding: Holding): void {
    this.holdings.set(owner, holding);
    if (this.holdings.size < this.sweepAt) return;
    const time = now();
    for (const [key, { until }] of this.holdings) if (until < time) this.holdings.delete(key);
    this.sweepAt = Math.max(1_000, 2 * this.holdings.size);
  }

  delete(owner: string): void {
    this.holdings.delete(owner);
  }
}
