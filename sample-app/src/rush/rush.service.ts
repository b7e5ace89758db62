import { ConflictException, Injectable } from '@nestjs/common';
import { LockService } from 'nestjs-distributed-lock';
import { Sale } from '../tickets/sale.js';
import { TicketsService } from '../tickets/tickets.service.js';
import { Rush, type RushReport } from './rush.js';

/** What the page shows, of this instance and of the lock that all instances share. */
export interface RushState {
  readonly show: string;
  readonly rush: RushReport | null;
  readonly sold: number;
  /** Buyers of this instance that wait. */
  readonly waitingHere: number;
  /** The instance whose buyer pays now. */
  readonly holder: string | null;
  readonly fencingToken: number | null;
}

@Injectable()
export class RushService {
  private rush: Rush | undefined;

  constructor(
    private readonly tickets: TicketsService,
    private readonly locks: LockService,
    private readonly sale: Sale,
  ) {}

  /**
   * All seats are free again, and the buyers click. Where buyers of another instance stand in line, these join them. Returns at
   * once; {@link state} tells how it goes.
   */
  async start(buyers: number, locked: boolean): Promise<void> {
    if (this.rush?.isRunning === true) throw new ConflictException('The buyers before are still in line');
    const rush = new Rush(buyers, locked, this.sale.seats);
    this.rush = rush;
    try {
      // Seats that are free again while a line is served would be sold twice.
      if ((await this.locks.inspect(`show:${this.sale.show}`)) === null) await this.tickets.reset();
    } catch (error) {
      this.rush = undefined;
      throw error;
    }
    void rush.run(() => (locked ? this.tickets.buy() : this.tickets.buyUnlocked()));
  }

  async state(): Promise<RushState> {
    const { show } = this.sale;
    const [{ sold }, lock] = await Promise.all([this.tickets.seats(), this.locks.inspect(`show:${show}`)]);
    const { rush } = this;
    return {
      show,
      rush: rush?.report() ?? null,
      sold,
      waitingHere: lock?.waiters.local ?? 0,
      holder: lock?.holders[0]?.label ?? null,
      fencingToken: lock?.fencingToken ?? null,
    };
  }
}
