import { setTimeout } from 'node:timers/promises';
import { GoneException, Injectable } from '@nestjs/common';
import { DistributedLock } from 'nestjs-distributed-lock';
import { Sale } from './sale.js';
import { SeatStore } from './seat-store.js';

export interface Ticket {
  show: string;
  seat: number;
}

@Injectable()
export class TicketsService {
  constructor(
    private readonly store: SeatStore,
    private readonly sale: Sale,
  ) {}

  /** One buyer at a time per show, however many instances of the shop are open. */
  @DistributedLock('show:$<this.sale.show>')
  async buy(): Promise<Ticket> {
    return await this.sell();
  }

  async buyUnlocked(): Promise<Ticket> {
    return await this.sell();
  }

  async seats(): Promise<{ show: string; seats: number; sold: number }> {
    const { show, seats } = this.sale;
    return { show, seats, sold: await this.store.sold() };
  }

  async reset(): Promise<void> {
    await this.store.setSold(0);
  }

  /** Right for one caller at a time only: a caller that reads during the payment sells the same seat again. */
  private async sell(): Promise<Ticket> {
    const { show, seats, paymentTime } = this.sale;
    const seat = (await this.store.sold()) + 1;
    if (seat > seats) throw new GoneException('Sold out');
    await setTimeout(paymentTime);
    await this.store.setSold(seat);
    return { show, seat };
  }
}
