import type { Tenure } from './tenure.js';

/** Leases per renewal command. */
const SHARE = 1_000;
/** Renewal commands under way at once: the store answers one while the client makes the next. */
const SHARES = 2;

/**
 * The renewals of one node. The node gets a few at a time, in the order in which the leases end. If the client sent all
 * at once, the last of 100,000 leases would expire while the store works on the first.
 */
export class RenewalLane {
  /** In the order in which the leases end. */
  private waiting: Tenure[] = [];
  private underway = 0;

  /** @param renew resolves when the store has answered for each lease; never rejects */
  constructor(private readonly renew: (share: readonly Tenure[]) => Promise<void>) {}

  add(due: readonly Tenure[]): void {
    let latest = this.waiting.at(-1)?.deadline ?? -Infinity;
    let isSorted = true;
    for (const tenure of due) {
      tenure.renewing = true;
      // Leases of one length come in their order.
      isSorted &&= tenure.deadline >= latest;
      latest = tenure.deadline;
      this.waiting.push(tenure);
    }
    if (!isSorted) this.waiting.sort((a, b) => a.deadline - b.deadline);
    this.flow();
  }

  private flow(): void {
    while (this.underway < SHARES && this.waiting.length > 0) {
      // The caller may have released a lease while it waited here.
      const share = this.waiting.splice(0, SHARE).filter((tenure) => tenure.held);
      if (share.length > 0) void this.send(share);
    }
  }

  private async send(share: readonly Tenure[]): Promise<void> {
    this.underway++;
    await this.renew(share);
    this.underway--;
    this.flow();
  }
}
