import { now } from '../../lock.clock.js';

/** What a quorum store remembers of one owner's locks. */
export class Holding {
  /** The last fencing token of each name. */
  readonly fencingTokens = new Map<string, number>();
  /** The names that the owner has given up. Nothing may be taken for them any more. */
  readonly released = new Set<string>();
  /** The members that may hold something for the owner. The others certainly do not. */
  private readonly possible = new Set<number>();
  /** The members for which the effect of a request is not certain: the request may arrive after a release. */
  private readonly unsure = new Set<number>();
  /** When the members have forgotten everything, ms on the monotonic clock. */
  until: number;

  constructor(readonly leaseTime: number) {
    this.until = now() + leaseTime;
  }

  /** The member is being asked to take something for the owner. */
  ask(index: number): void {
    this.possible.add(index);
    this.unsure.add(index);
  }

  /** The member has answered. */
  answered(index: number): void {
    this.unsure.delete(index);
  }

  /** The member has taken nothing, and held nothing before. */
  refused(index: number): void {
    this.possible.delete(index);
    this.unsure.delete(index);
  }

  mayBeHeldBy(index: number): boolean {
    return this.possible.has(index);
  }

  isUnsureOf(index: number): boolean {
    return this.unsure.has(index);
  }

  prolong(leaseTime: number): void {
    this.until = Math.max(this.until, now() + leaseTime);
  }
}

/** By owner. An owner sends nothing when its lease just ends, so ended holdings are removed from time to time. */
export class Holdings {
  private readonly holdings = new Map<string, Holding>();
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
