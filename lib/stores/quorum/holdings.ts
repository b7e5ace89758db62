import { now } from '../../lock.clock.js';

/** What a quorum store remembers of one owner's locks. */
export class Holding {
  /** The last fencing token of each name. */
  readonly fencingTokens = new Map<string, number>();
  /** The names that the owner has given up, so that nothing is to be taken for it any more. */
  readonly released = new Set<string>();
  /** The members that may hold something for the owner. The others certainly do not. */
  private readonly possible = new Set<number>();
  /** The members of which it is not certain what a request has done: it may arrive after a release. */
  private readonly unsure = new Set<number>();
  /** After which the members have forgotten it all, ms on the monotonic clock. */
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

  /** The member has taken nothing, and had nothing before. */
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

/** By owner. An owner whose lease just ends says nothing, so what is over is swept out now and then. */
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
