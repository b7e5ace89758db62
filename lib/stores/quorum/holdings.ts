import { now } from '../../runtime/clock.js';
import { TransientMap } from '../../store/transient-map.js';

/** What a quorum store remembers of one owner's locks. */
export class Holding {
  /** The last fencing token of each name. */
  readonly fencingTokens = new Map<string, number>();
  /** The names that the owner has given up. Nothing may be taken for them any more. */
  readonly released = new Set<string>();
  /** Of each member, whether it may hold something for the owner. */
  private readonly holds: boolean[] = [];
  /** Of each member, how many requests have no answer. Such a request may arrive after a release, and after later requests. */
  private readonly unanswered: number[] = [];
  /** When the members have forgotten everything, ms on the monotonic clock. */
  until: number;

  constructor(readonly leaseTime: number) {
    this.until = now() + leaseTime;
  }

  /** The member is being asked to take something for the owner. */
  ask(index: number): void {
    this.holds[index] = true;
    this.unanswered[index] = (this.unanswered[index] ?? 0) + 1;
  }

  /** The member has answered one of the requests, or that request has certainly not been sent. */
  answered(index: number): void {
    this.unanswered[index] = (this.unanswered[index] ?? 0) - 1;
  }

  /** The same, and the member has taken nothing, and held nothing before. */
  refused(index: number): void {
    this.answered(index);
    this.holds[index] = this.isUnsureOf(index);
  }

  mayBeHeldBy(index: number): boolean {
    return this.holds[index] === true;
  }

  /** The effect of a request is not certain. */
  isUnsureOf(index: number): boolean {
    return (this.unanswered[index] ?? 0) > 0;
  }

  prolong(leaseTime: number): void {
    this.until = Math.max(this.until, now() + leaseTime);
  }
}

/** By owner. An owner sends nothing when its lease just ends, so ended holdings are removed from time to time. */
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
