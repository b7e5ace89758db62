import type { Tenure } from './tenure.js';

/** How many leases are renewed at once. */
const SHARE = 1_000;
/** How many shares may be under way at once: the store answers one while the next is made. */
const SHARES = 2;

/**
 * The renewals that one node of the store has to do. The node gets a few at a time, in the order in which the leases end.
 * If all were sent at once, the last of a hundred thousand would run out of time behind the first, and be lost with them.
 */
export class RenewalLane {
  /** In the order in which the leases end. */
  private waiting: Tenure[] = [];
  private underway = 0;

  /** @param renew resolves when each lease has its answer, and never rejects */
  constructor(private readonly renew: (share: readonly Tenure[]) => Promise<void>) {}

  add(due: readonly Tenure[]): void {
    for (const tenure of due) tenure.renewing = true;
    this.waiting = this.waiting.concat(due).sort((a, b) => a.deadline - b.deadline);
    this.flow();
  }

  private flow(): void {
    while (this.underway < SHARES && this.waiting.length > 0) {
      // Some may have been released while they waited here.
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
