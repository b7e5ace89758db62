import 'reflect-metadata';
import { afterEach, describe, expect, it } from '@jest/globals';
import { type CallHandler, type ExecutionContext, Injectable, Module } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { lastValueFrom, Observable, of, throwError } from 'rxjs';
import {
  assertLocked,
  currentLease,
  DistributedLock,
  getLockServiceToken,
  LockInterceptor,
  LockModule,
  LockService,
  LockTimeoutError,
  MemoryLockStore,
} from '../../lib/index.js';
import { describeLockStore, makeLockBusy, passThroughLocks } from '../../lib/testing/index.js';

describe('passThroughLocks', () => {
  class Orders {
    @DistributedLock('order:$<args[0].id>')
    async pay(order: { id?: string }): Promise<string> {
      assertLocked();
      return `paid ${String(order.id)}, lease ${typeof currentLease()}`;
    }

    @DistributedLock('feed')
    feed(): Observable<number> {
      return of(1, 2);
    }

    @DistributedLock('feed', { returns: 'observable' })
    async promised(): Promise<Observable<number>> {
      return Promise.resolve(of(1, 2));
    }

    @DistributedLock('feed')
    fail(): Observable<number> {
      throw new Error('of the method itself');
    }
  }

  let restore = passThroughLocks();
  restore();
  afterEach(() => {
    restore();
  });

  it('runs a decorated method of an object that was made by hand, without lock, key or service', async () => {
    restore = passThroughLocks();
    expect(await new Orders().pay({ id: 'a' })).toBe('paid a, lease undefined');
    expect(await new Orders().pay({})).toBe('paid undefined, lease undefined');
  });

  it('passes Observables on', async () => {
    restore = passThroughLocks();
    expect(await lastValueFrom(new Orders().feed())).toBe(2);
    expect(await lastValueFrom(await new Orders().promised())).toBe(2);
    await expect(lastValueFrom(new Orders().fail())).rejects.toThrow('of the method itself');
  });

  it('passes through interceptors', async () => {
    restore = passThroughLocks();
    const Interceptor = LockInterceptor('order:$<req.params.id>');
    const interceptor = new Interceptor(undefined);
    const context = {
      getClass: () => Orders,
      getHandler: () => Orders.prototype.pay,
    } as unknown as ExecutionContext;
    const intercept = async (handler: CallHandler) =>
      await lastValueFrom((await interceptor.intercept(context, handler)) as Observable<unknown>);
    expect(await intercept({ handle: () => of('handled') })).toBe('handled');
    await expect(intercept({ handle: () => throwError(() => new Error('mine')) })).rejects.toThrow('mine');
  });

  it('fails closed again once it is restored', async () => {
    restore = passThroughLocks();
    restore();
    await expect(new Orders().pay({ id: 'a' })).rejects.toMatchObject({ code: 'LOCK_CONFIG' });
    await expect(lastValueFrom(new Orders().feed())).rejects.toMatchObject({ code: 'LOCK_CONFIG' });
    expect(() => {
      assertLocked();
    }).toThrow();
  });

  it('stays on until each call has restored', async () => {
    const others = passThroughLocks();
    restore = passThroughLocks();
    restore();
    restore();
    expect(await new Orders().pay({ id: 'a' })).toContain('paid');
    others();
    await expect(new Orders().pay({ id: 'a' })).rejects.toMatchObject({ code: 'LOCK_CONFIG' });
  });

  it('is refused in production', () => {
    const { NODE_ENV } = process.env;
    process.env.NODE_ENV = 'production';
    try {
      expect(() => passThroughLocks()).toThrow(/production/);
    } finally {
      process.env.NODE_ENV = NODE_ENV;
    }
  });
});

describe('A test of an application that imports LockModule with Redis', () => {
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

it.each(['describe', 'it', 'beforeAll', 'afterAll'] as const)(
  'describeLockStore says that it needs the global %s',
  (word) => {
    const given: unknown = Reflect.get(globalThis, word);
    Reflect.set(globalThis, word, undefined);
    try {
      const place = () =>
        Promise.resolve({ open: () => new MemoryLockStore(), close: () => Promise.resolve() });
      expect(() => {
        describeLockStore('none', place);
      }).toThrow(
        expect.objectContaining({
          code: 'LOCK_CONFIG',
          message: expect.stringContaining(`missing: ${word})`),
        }),
      );
    } finally {
      Reflect.set(globalThis, word, given);
    }
  },
);
