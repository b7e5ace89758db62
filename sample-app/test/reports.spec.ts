import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { SchedulerRegistry } from '@nestjs/schedule';
import { Test, type TestingModule } from '@nestjs/testing';
import { LockTestingModule, passThroughLocks } from 'nestjs-distributed-lock/testing';
import { setTimeout as sleep } from 'node:timers/promises';
import { type TestRedis, startRedis } from '../../test/support/redis.js';
import { AppModule } from '../src/app.module.js';
import { ReportsModule } from '../src/reports/reports.module.js';
import { ReportsService } from '../src/reports/reports.service.js';
import { MemorySeatStore } from '../src/tickets/memory-seat-store.js';
import { Sale } from '../src/tickets/sale.js';
import { TicketsModule } from '../src/tickets/tickets.module.js';
import { TicketsService } from '../src/tickets/tickets.service.js';

describe('on Redis', () => {
  let redis: TestRedis;
  let instances: TestingModule[];

  beforeAll(async () => {
    redis = await startRedis();
    instances = await Promise.all(
      [1, 2, 3].map(async () => {
        const module = await Test.createTestingModule({
          imports: [AppModule.forRoot({ redisUrl: redis.url })],
        }).compile();
        return await module.init();
      }),
    );
  });

  afterAll(async () => {
    await Promise.all(instances.map((instance) => instance.close()));
    await redis.stop();
  });

  it('three instances write the nightly report once', async () => {
    const written = () => instances.flatMap((instance) => instance.get(ReportsService).written);
    for (const instance of instances) {
      void instance.get(SchedulerRegistry).getCronJob('nightly-report').fireOnTick();
    }
    while (written().length === 0) await sleep(5);
    // The clocks of some instances are late.
    await Promise.all(instances.map((instance) => instance.get(ReportsService).nightly()));
    expect(written()).toEqual(['tonight: 0 of 100 seats sold']);
  });
});

it('in memory, two calls write it once', async () => {
  const imports = [LockTestingModule.forRoot(), TicketsModule.forRoot(), ReportsModule];
  const module = await Test.createTestingModule({ imports }).compile();
  const reports = module.get(ReportsService);
  await Promise.all([reports.nightly(), reports.nightly()]);
  expect(reports.written).toHaveLength(1);
  await module.close();
});

it('as a unit, without its lock, each call writes it', async () => {
  const restore = passThroughLocks();
  const reports = new ReportsService(new TicketsService(new MemorySeatStore(), new Sale()));
  await reports.nightly();
  await reports.nightly();
  expect(reports.written).toHaveLength(2);
  restore();
});
