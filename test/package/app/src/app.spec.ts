import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Test, type TestingModule } from '@nestjs/testing';
import { currentLease, isLockTimeoutError, LockService, MemoryLockStore } from 'nestjs-distributed-lock';
import {
  describeLockStore,
  LockTestingModule,
  loseLock,
  makeLockBusy,
  passThroughLocks,
} from 'nestjs-distributed-lock/testing';
import { Orders } from './app.js';

let app: TestingModule;
const boot = async () => {
  app = await Test.createTestingModule({
    imports: [LockTestingModule.forRoot()],
    providers: [Orders],
  }).compile();
};

describe('with locks in memory', () => {
  beforeEach(boot);
  afterEach(() => app.close());

  it('pays one at a time', async () => {
    const orders = app.get(Orders);
    await Promise.all(Array.from({ length: 10 }, () => orders.pay('a')));
    expect(orders.most).toBe(1);
  });

  it('refuses what is busy', async () => {
    const busy = await makeLockBusy(app.get(LockService).getLock('order:a'));
    const refusal: unknown = await app
      .get(Orders)
      .cancel('a')
      .catch((error: unknown) => error);
    expect(isLockTimeoutError(refusal)).toBe(true);
    await busy.release();
    expect(await app.get(Orders).cancel('a')).toBe('cancelled a');
  });

  it('hears of a loss', async () => {
    const locks = app.get(LockService);
    await locks.using('order:a', async (lease) => {
      expect(currentLease()).toBe(lease);
      await loseLock(locks.getLock('order:a'));
      expect(lease.signal.aborted).toBe(true);
    });
  });
});

it('runs decorated methods of a hand-made object where locks are switched off', async () => {
  const restore = passThroughLocks();
  expect(await new Orders().pay('a')).toBe('paid a');
  restore();
  await expect(new Orders().pay('a')).rejects.toMatchObject({ code: 'LOCK_CONFIG' });
});

describe('under fake timers', () => {
  beforeEach(async () => {
    jest.useFakeTimers();
    await boot();
  });
  afterEach(async () => {
    jest.useRealTimers();
    await app.close();
  });

  it('waits, renews and expires as they tell', async () => {
    const locks = app.get(LockService);
    const busy = await makeLockBusy(locks.getLock('order:a'));
    const refused = expect(app.get(Orders).pay('a')).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
    await jest.advanceTimersByTimeAsync(5_001);
    await refused;
    await jest.advanceTimersByTimeAsync(600_000);
    expect(busy.held).toBe(true);

    const fixed = await locks.acquire('order:b', { leaseTime: 5_000 });
    const next = locks.acquire('order:b');
    await jest.advanceTimersByTimeAsync(5_100);
    expect(fixed.held).toBe(false);
    expect(Number.isSafeInteger((await next).fencingToken)).toBe(true);
    expect((await next).fencingToken).toBeGreaterThan(fixed.fencingToken);
  });
});

describeLockStore('memory', async () => {
  const store = new MemoryLockStore();
  return { open: () => store, close: async () => {} };
});
