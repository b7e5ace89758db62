/** What a quorum store remembers of one owner's locks. */
export class Holding {
  /** The last fencing token of each name. */
  readonly fencingTokens = new Map<string, number>();
  /** The names that the owner has given up, so that nothing is to be taken for it any more. */
  readonly released = new Set<string>();
  /** The members of which it is not certain what a request has done: their releases are repeated. */
  readonly unsure: Set<number>;
  /** After which the members have forgotten it all, ms on the monotonic clock. */
  until: number;

  constructor(
    members: number,
    readonly leaseTime: number,
  ) {
    this.unsure = new Set(Array.from({ length: members }, (_, index) => index));
    this.until = performance.now() + leaseTime;
  }

  prolong(leaseTime: number): void {
    this.until = Math.max(this.until, performance.now() + leaseTime);
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
    const now = performance.now();
    for (const [key, { until }] of this.holdings) if (until < now) this.holdings.delete(key);
    this.sweepAt = Math.max(1_000, 2 * this.holdings.size);
  }

  delete(owner: string): void {
    this.holdings.delete(owner);
  }
}
