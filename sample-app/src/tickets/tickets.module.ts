import { Module, type DynamicModule } from '@nestjs/common';
import { MemorySeatStore } from './memory-seat-store.js';
import { RedisSeatStore } from './redis-seat-store.js';
import { Sale } from './sale.js';
import { SeatStore } from './seat-store.js';
import { TicketsController } from './tickets.controller.js';
import { TicketsService } from './tickets.service.js';

@Module({})
export class TicketsModule {
  static forRoot(redisUrl?: string): DynamicModule {
    const seatStore = ({ show }: Sale) =>
      redisUrl ? new RedisSeatStore(redisUrl, `ticket-shop:${show}:sold`) : new MemorySeatStore();
    return {
      module: TicketsModule,
      global: true,
      exports: [TicketsService, Sale],
      controllers: [TicketsController],
      providers: [TicketsService, Sale, { provide: SeatStore, useFactory: seatStore, inject: [Sale] }],
    };
  }
}
