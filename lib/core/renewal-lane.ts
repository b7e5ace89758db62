import type { Tenure } from './tenure.js';

/** Leases that are renewed in one go. */
const SHARE = 1_000;
/** Shares that may be under way at once: the store answers one while the next is made. */
const SHARES = 2;

/**
 * The renewals that one node of the store has to do. It gets a few at a time, those that end first before the others:
 * all at once, the last of a hundred thousand would run out of time behind the first, and be lost with them.
 */
export class RenewalLane {
  /** Those that end first come first. */
  private waiting: Tenure[] = [];
  private underway = 0;

  /** @param renew resolves when each has its answer, and never rejects */
  constructor(private readonly renew: (share: readonly Tenure[]) => Promise<void>) {}

  add(due: readonly Tenure[]): void {
    for (const tenure of due) tenure.renewing = true;
    this.waiting = this.waiting.concat(due).sort((a, b) => a.deadline - b.deadline);
    this.flow();
  }

  private flow(): void {
    while (this.underway < SHARES && this.waiting.length > 0) {
      // Some may have been released while they stood here.
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
