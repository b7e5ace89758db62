import 'reflect-metadata';
import { afterEach, describe, expect, it } from '@jest/globals';
import type { CallHandler, ExecutionContext } from '@nestjs/common';
import { lastValueFrom, Observable, of, throwError } from 'rxjs';
import { assertLocked, currentLease, DistributedLock, LockInterceptor } from '../../lib/index.js';
import { passThroughLocks } from '../../lib/testing/index.js';

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

describe('passThroughLocks', () => {
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
