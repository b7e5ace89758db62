import { Module, type DynamicModule } from '@nestjs/common';
import { LockModule } from 'nestjs-distributed-lock';
import { HealthModule } from './health/health.module.js';
import { ReportsModule } from './reports/reports.module.js';
import { TicketsModule } from './tickets/tickets.module.js';

@Module({})
export class AppModule {
  /** @param redisUrl where several instances share locks and seats; without it both live in this process's memory */
  static forRoot(redisUrl?: string): DynamicModule {
    return {
      module: AppModule,
      imports: [
        LockModule.forRoot(redisUrl ? { connection: redisUrl } : { store: 'memory' }),
        TicketsModule.forRoot(redisUrl),
        ReportsModule,
        HealthModule,
      ],
    };
  }
}
