import 'reflect-metadata';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  currentLease,
  DistributedLock,
  getLockServiceToken,
  type Lease,
  type Lock,
  LockConfigError,
  LockLostError,
  LockService,
  LockTimeoutError,
  MemoryLockStore,
} from '../../lib/index.js';
import {
  LockTestingModule,
  type LockTestingOptions,
  loseLock,
  makeLockBusy,
} from '../../lib/testing/index.js';

@Injectable()
class Orders {
  @DistributedLock('order:$<args[0]>', { onLost: 'throw' })
  async pay(_id: string, work: () => Promise<unknown> = () => Promise.resolve()): Promise<Lease | undefined> {
    await work();
    return currentLease();
  }

  @DistributedLock('order:$<args[0]>', { waitTime: '1h' })
  async payPatiently(id: string): Promise<string> {
    return await Promise.resolve(id);
  }

  @DistributedLock(() => new Promise<string>(() => undefined), { waitTime: '1h' })
  async payLater(): Promise<string> {
    return await Promise.resolve('paid');
  }
}

const open: TestingModule[] = [];
const boot = async (options?: LockTestingOptions) => {
  const imports = [LockTestingModule.forRoot(options)];
  const module = await Test.createTestingModule({ imports, providers: [Orders] }).compile();
  open.push(await module.init());
  return module;
};

afterEach(async () => {
  await Promise.all(open.splice(0).map((module) => module.close()));
});

describe('LockTestingModule', () => {
  it('gives decorated services their locks without Redis', async () => {
    const lease = await (await boot()).get(Orders).pay('a');
    expect(lease).toMatchObject({ name: 'order:a' });
    expect(Number.isSafeInteger(lease?.fencingToken)).toBe(true);
  });

  it('cuts each wait at maxWaitTime, also where the call or its decorator says more', async () => {
    const module = await boot({ maxWaitTime: 20 });
    const locks = module.get(LockService);
    await makeLockBusy(locks.getLock('order:a'));
    const waits = [
      () => module.get(Orders).pay('a'),
      () => module.get(Orders).payPatiently('a'),
      () => locks.acquire('order:a', { waitTime: Infinity }),
      () => locks.acquire(['order:b', 'order:a'], { waitTime: '5m' }),
      () => locks.once('order:a', { period: '1m' }, () => undefined),
    ];
    for (const wait of waits)
      await expect(wait()).rejects.toMatchObject({ code: 'LOCK_TIMEOUT', key: 'order:a' });
    expect(await locks.tryAcquire('order:a')).toBeNull();
  });

  it('takes the options of LockModule', async () => {
    const module = await Test.createTestingModule({
      imports: [LockTestingModule.forRoot({ name: 'reports', waitTime: 0, isGlobal: false })],
    }).compile();
    open.push(module);
    const locks = module.get<LockService>(getLockServiceToken('reports'), { strict: false });
    await makeLockBusy(locks.getLock('a'));
    await expect(locks.acquire('a')).rejects.toBeInstanceOf(LockTimeoutError);
  });

  it('lets instances on one store compete, and others not', async () => {
    const store = new MemoryLockStore();
    const [one, two, apart] = [await boot({ store }), await boot({ store }), await boot()].map((module) =>
      module.get(LockService),
    );
    await makeLockBusy(one!.getLock('a'));
    expect(await two!.tryAcquire('a')).toBeNull();
    expect(await apart!.tryAcquire('a')).not.toBeNull();
  });
});

describe('makeLockBusy', () => {
  const kinds: [string, (locks: LockService) => Lock][] = [
    ['plain', (locks) => locks.getLock('a')],
    ['fair', (locks) => locks.getFairLock('a')],
    ['write', (locks) => locks.getReadWriteLock('a').write],
    ['semaphore', (locks) => locks.getSemaphore('a', 1)],
    ['semaphore of three', (locks) => locks.getSemaphore('a', 3)],
    ['multi', (locks) => locks.getMultiLock([locks.getLock('a'), locks.getLock('b')])],
  ];

  it.each(kinds)('keeps a %s lock until its lease is released', async (_, lockOf) => {
    const lock = lockOf((await boot()).get(LockService));
    const busy = await makeLockBusy(lock);
    expect(await lock.tryAcquire()).toBeNull();
    await busy.release();
    expect(await lock.tryAcquire()).not.toBeNull();
  });

  it('is another owner also where the caller is inside of another lock', async () => {
    const module = await boot({ waitTime: 0 });
    const locks = module.get(LockService);
    await locks.using('other', async () => {
      const busy = await makeLockBusy(locks.getLock('order:a'));
      await expect(module.get(Orders).pay('a')).rejects.toBeInstanceOf(LockTimeoutError);
      await busy.release();
      await expect(module.get(Orders).pay('a')).resolves.toBeDefined();
    });
  });

  it('refuses a lock that is not free, and one that the caller is in', async () => {
    const lock = (await boot()).get(LockService).getLock('a');
    await lock.using(async () => {
      await expect(makeLockBusy(lock)).rejects.toBeInstanceOf(LockConfigError);
    });
    await makeLockBusy(lock);
    await expect(makeLockBusy(lock)).rejects.toBeInstanceOf(LockConfigError);
  });

  it('refuses a semaphore of which a permit is taken, and takes none', async () => {
    const locks = (await boot()).get(LockService);
    const semaphore = locks.getSemaphore('a', 3);
    const taken = await semaphore.acquire();
    await expect(makeLockBusy(semaphore)).rejects.toBeInstanceOf(LockConfigError);
    expect((await locks.inspect('a'))?.holders).toHaveLength(1);
    await taken.release();
    await (await makeLockBusy(semaphore)).release();
    expect(await locks.inspect('a')).toBeNull();
  });

  it('takes all permits of the semaphores in a multi-lock', async () => {
    const locks = (await boot()).get(LockService);
    const semaphore = locks.getSemaphore('a', 3);
    const multiLock = locks.getMultiLock([semaphore, locks.getSemaphore('b', 2)]);
    const busy = await makeLockBusy(multiLock);
    expect([await multiLock.tryAcquire(), await semaphore.tryAcquire()]).toEqual([null, null]);
    await busy.release();
    expect([await locks.inspect('a'), await locks.inspect('b')]).toEqual([null, null]);
  });

  it.each<[string, (locks: LockService) => Lock]>([
    ['a read lock', (locks) => locks.getReadWriteLock('a').read],
    ['a multi-lock of read locks', (locks) => locks.getMultiLock([locks.getReadWriteLock('a').read])],
    [
      'a multi-lock of both sides',
      (locks) => {
        const { read, write } = locks.getReadWriteLock('a');
        return locks.getMultiLock([read, write]);
      },
    ],
  ])('keeps readers out of %s, too', async (_, lockOf) => {
    const locks = (await boot()).get(LockService);
    const busy = await makeLockBusy(lockOf(locks));
    expect(await lockOf(locks).tryAcquire()).toBeNull();
    expect(await locks.getReadWriteLock('a').read.tryAcquire()).toBeNull();
    await expect(makeLockBusy(lockOf(locks))).rejects.toThrow(/held already/);
    await busy.release();
    expect(await locks.inspect('a')).toBeNull();
  });
});

describe('loseLock', () => {
  it('ends the lease of a running method', async () => {
    const module = await boot();
    const pay = module.get(Orders).pay('a', async () => {
      const { signal } = currentLease()!;
      await loseLock(module.get(LockService).getLock('order:a'));
      expect(signal.reason).toBeInstanceOf(LockLostError);
    });
    await expect(pay).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'deleted' });
  });

  it('refuses a lock that is not held', async () => {
    const lock = (await boot()).get(LockService).getLock('a');
    await expect(loseLock(lock)).rejects.toBeInstanceOf(LockConfigError);
  });
});

describe('under fake timers that leave performance.now() as it is', () => {
  beforeEach(() => {
    jest.useFakeTimers({ doNotFake: ['performance'] });
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  it.each(['getLock', 'getFairLock'] as const)('a wait says so instead of never ending (%s)', async (get) => {
    const lock = (await boot()).get(LockService)[get]('a');
    await makeLockBusy(lock);
    const refused = expect(lock.acquire({ waitTime: 60_000 })).rejects.toThrow(
      /fake timers.*performance\.now/,
    );
    await jest.advanceTimersByTimeAsync(60_010);
    await refused;
  });
});

describe('under the legacy fake timers of Jest', () => {
  afterEach(() => {
    jest.useRealTimers();
  });

  it('a wait says so at once', async () => {
    const locks = (await boot()).get(LockService);
    await makeLockBusy(locks.getLock('a'));
    jest.useFakeTimers({ legacyFakeTimers: true });
    await expect(locks.acquire('a', { waitTime: 1_000 })).rejects.toThrow(/fake timers.*performance\.now/);
    jest.useRealTimers();
    // A spy that calls the real one is none.
    const spy = jest.spyOn(globalThis, 'setTimeout');
    await expect(locks.acquire('a', { waitTime: 20 })).rejects.toBeInstanceOf(LockTimeoutError);
    spy.mockRestore();
  });
});

describe('under fake timers', () => {
  let locks: LockService;
  beforeEach(async () => {
    jest.useFakeTimers();
    locks = (await boot()).get(LockService);
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  it('waits, renews and expires as they tell', async () => {
    const busy = await makeLockBusy(locks.getLock('a'));
    const refused = expect(locks.acquire('a')).rejects.toBeInstanceOf(LockTimeoutError);
    await jest.advanceTimersByTimeAsync(10_001);
    await refused;

    await jest.advanceTimersByTimeAsync(600_000);
    expect(busy.held).toBe(true);
    expect(await locks.tryAcquire('a')).toBeNull();

    const fixed = await locks.acquire('b', { leaseTime: 5_000 });
    const next = locks.acquire('b');
    await jest.advanceTimersByTimeAsync(5_100);
    expect(fixed.held).toBe(false);
    expect((await next).fencingToken).toBeGreaterThan(fixed.fencingToken);
  });

  it('waits no longer than maxWaitTime for a key', async () => {
    const orders = (await boot({ maxWaitTime: 20 })).get(Orders);
    const refused = expect(orders.payLater()).rejects.toThrow('has given no key for 20 ms');
    await jest.advanceTimersByTimeAsync(3_600_000);
    await refused;
  });

  it.each(['getLock', 'getFairLock'] as const)(
    'a release wakes a waiter, without a tick (%s)',
    async (get) => {
      const busy = await makeLockBusy(locks[get]('a'));
      const other = locks[get]('a').acquire({ leaseTime: 1_000 });
      for (let turn = 0; turn < 20; turn++) await Promise.resolve();
      await busy.release();
      expect((await other).held).toBe(true);
    },
  );
});
