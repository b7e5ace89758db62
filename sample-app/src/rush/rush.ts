import { HttpException } from '@nestjs/common';
import type { Ticket } from '../tickets/tickets.service.js';

/** How buyers came away. */
export interface Tally {
  bought: number;
  soldOut: number;
  /** The lock stayed busy for all of their wait. */
  busy: number;
  failed: number;
}

/** How a rush goes. */
export interface RushReport extends Pick<Rush, 'buyers' | 'locked' | 'seats' | 'tally'> {
  readonly running: boolean;
  /** Since it began, or as long as it took, ms. */
  readonly time: number;
}

/** Many buyers that click at the same moment, and what has become of them so far. */
export class Rush {
  /** How often each seat was sold, by its number less one. */
  readonly seats: number[];
  readonly tally: Tally = { bought: 0, soldOut: 0, busy: 0, failed: 0 };
  private readonly begun = performance.now();
  private ended: number | undefined;

  constructor(
    readonly buyers: number,
    readonly locked: boolean,
    seats: number,
  ) {
    this.seats = Array.from({ length: seats }, () => 0);
  }

  get isRunning(): boolean {
    return this.ended === undefined;
  }

  report(): RushReport {
    const { buyers, locked, seats, tally, isRunning: running } = this;
    const time = Math.round((this.ended ?? performance.now()) - this.begun);
    return { buyers, locked, seats, tally, running, time };
  }

  /** @param buy what each of them does */
  async run(buy: () => Promise<Ticket>): Promise<void> {
    await Promise.all(Array.from({ length: this.buyers }, () => this.one(buy)));
    this.ended = performance.now();
  }

  private async one(buy: () => Promise<Ticket>): Promise<void> {
    try {
      const { seat } = await buy();
      this.seats[seat - 1] = (this.seats[seat - 1] ?? 0) + 1;
      this.tally.bought++;
    } catch (error) {
      const status = error instanceof HttpException ? error.getStatus() : 500;
      if (status === 410) this.tally.soldOut++;
      else if (status === 409) this.tally.busy++;
      else this.tally.failed++;
    }
  }
}
