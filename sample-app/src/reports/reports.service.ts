import { Injectable, Logger } from '@nestjs/common';
import { Cron, CronExpression } from '@nestjs/schedule';
import { DistributedLock } from 'nestjs-distributed-lock';
import { TicketsService } from '../tickets/tickets.service.js';

@Injectable()
export class ReportsService {
  /** What this instance has written. */
  readonly written: string[] = [];
  private readonly logger = new Logger(ReportsService.name);

  constructor(private readonly tickets: TicketsService) {}

  /**
   * Every instance fires, one runs: the others find the lock busy and skip. The lock stays for a minute, because their
   * clocks do not agree to the millisecond and the report takes less than that.
   */
  @Cron(CronExpression.EVERY_DAY_AT_3AM, { name: 'nightly-report' })
  @DistributedLock('report:nightly', { waitTime: 0, onBusy: 'skip', minHoldTime: 60_000 })
  async nightly(): Promise<void> {
    const { show, seats, sold } = await this.tickets.seats();
    const report = `${show}: ${String(sold)} of ${String(seats)} seats sold`;
    this.written.push(report);
    this.logger.log(report);
  }
}
