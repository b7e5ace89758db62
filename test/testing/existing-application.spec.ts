import 'reflect-metadata';
import { afterEach, describe, expect, it } from '@jest/globals';
import { Injectable, Module } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  currentLease,
  DistributedLock,
  getLockServiceToken,
  LockModule,
  LockService,
  LockTimeoutError,
} from '../../lib/index.js';
import { makeLockBusy } from '../../lib/testing/index.js';

@Injectable()
class Orders {
  @DistributedLock('order:$<args[0]>', { waitTime: 0 })
  async pay(id: string): Promise<string> {
    return Promise.resolve(`${id} under ${String(currentLease()?.name)}`);
  }
}

@Injectable()
class Reports {
  @DistributedLock('report', { waitTime: 0, instance: 'reports' })
  async make(): Promise<string | undefined> {
    return Promise.resolve(currentLease()?.name);
  }
}

/** Nothing listens there: what is not replaced fails. */
const NOWHERE = 'redis://127.0.0.1:1';

@Module({
  imports: [
    LockModule.forRoot({ connection: NOWHERE }),
    LockModule.forRootAsync({ name: 'reports', useFactory: () => ({ connection: NOWHERE }) }),
  ],
  providers: [Orders, Reports],
})
class AppModule {}

describe('A test of an application that imports LockModule with Redis', () => {
  let app: TestingModule | undefined;
  afterEach(() => app?.close());

  it('runs without Redis when it overrides the services', async () => {
    const factory = () => new LockService({ store: 'memory' });
    app = await Test.createTestingModule({ imports: [AppModule] })
      .overrideProvider(LockService)
      .useFactory({ factory })
      .overrideProvider(getLockServiceToken('reports'))
      .useFactory({ factory })
      .compile();
    await app.init();
    const [orders, reports] = [app.get(Orders), app.get(Reports)];
    expect(await orders.pay('7')).toBe('7 under order:7');
    expect(await reports.make()).toBe('report');

    const busy = await makeLockBusy(app.get(LockService).getLock('order:7'));
    await expect(orders.pay('7')).rejects.toBeInstanceOf(LockTimeoutError);
    await busy.release();
    expect(await orders.pay('7')).toBe('7 under order:7');
    const other = app.get<LockService>(getLockServiceToken('reports'), { strict: false });
    await makeLockBusy(other.getLock('report'));
    await expect(reports.make()).rejects.toBeInstanceOf(LockTimeoutError);
    expect((await app.get(LockService).health()).status).toBe('up');
  });
});
