import { Module, type DynamicModule } from '@nestjs/common';
import { LockModule } from 'nestjs-distributed-lock';
import { LockBoardModule } from 'nestjs-distributed-lock/board';
import { LockTelemetryModule } from 'nestjs-distributed-lock/otel';
import { LoopbackGuard } from './board.guard.js';
import { HealthModule } from './health/health.module.js';
import { ReportsModule } from './reports/reports.module.js';
import { RushModule } from './rush/rush.module.js';
import { TicketsModule } from './tickets/tickets.module.js';

/** How the shop is opened. */
export interface ShopOptions {
  /** Where several instances share locks and seats. Without it both live in the memory of this process. */
  redisUrl?: string | undefined;
  /** How long a buyer waits in line before the answer is 409, ms. */
  waitTime?: number;
}

@Module({})
export class AppModule {
  static forRoot({ redisUrl, waitTime = 5_000 }: ShopOptions = {}): DynamicModule {
    return {
      module: AppModule,
      imports: [
        // Without an SDK in the process, the spans and metrics of these locks go nowhere.
        LockTelemetryModule.forRoot(),
        LockModule.forRoot({ waitTime, ...(redisUrl ? { connection: redisUrl } : { store: 'memory' }) }),
        TicketsModule.forRoot(redisUrl),
        // The locks of all instances, on a page at /locks.
        LockBoardModule.forRoot({ readOnly: false, guards: [LoopbackGuard] }),
        RushModule,
        ReportsModule,
        HealthModule,
      ],
    };
  }
}
