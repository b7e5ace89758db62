import 'reflect-metadata';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Injectable, Logger, Scope, type Type } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { Transactional as MikroTransactional } from '@mikro-orm/core';
import { Transactional } from '@nestjs-cls/transactional';
import { UseCls } from 'nestjs-cls';
import { Transactional as TypeOrmTransactional } from 'typeorm-transactional';
import {
  DistributedLock,
  type LockEvent,
  LockModule,
  type LockModuleOptions,
  LockService,
} from '../../lib/index.js';
import { InTransaction } from '../doubles/transactional.js';

let warn: jest.SpiedFunction<Logger['warn']>;
let module: TestingModule | undefined;

beforeEach(() => {
  warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
});

afterEach(async () => {
  await module?.close();
  module = undefined;
  warn.mockRestore();
});

/** The warnings that the service gives at boot. */
async function warningsOf(type: Type, options?: Partial<LockModuleOptions>): Promise<LockEvent[]> {
  module = await Test.createTestingModule({
    imports: [LockModule.forRoot({ store: 'memory', ...options })],
    providers: [type],
  }).compile();
  const events: LockEvent[] = [];
  module.get(LockService).events$.subscribe((event) => events.push(event));
  await module.init();
  return events;
}

/** A service with the decorators on its method, the upper one first. */
function serviceWith(...decorators: MethodDecorator[]): Type {
  @Injectable()
  class Orders {
    async pay(): Promise<void> {
      await Promise.resolve();
    }
  }
  const descriptor = Object.getOwnPropertyDescriptor(Orders.prototype, 'pay')!;
  Reflect.decorate(decorators, Orders.prototype, 'pay', descriptor);
  Object.defineProperty(Orders.prototype, 'pay', descriptor);
  return Orders;
}

/** A decorator that takes only some methods. */
const onMethod = (decorator: unknown) => decorator as MethodDecorator;
const lock = onMethod(DistributedLock('order'));
const transaction = onMethod(Transactional());
const mikroTransaction = onMethod(MikroTransactional());
const span: MethodDecorator = (_, __, descriptor: PropertyDescriptor) => {
  descriptor.value = new Proxy(descriptor.value as object, {});
};
const found = [
  expect.objectContaining({
    type: 'warning',
    code: 'lock-inside-transaction',
    message: expect.stringContaining('@DistributedLock on Orders.pay is below'),
  }),
];

describe('a lock below the decorator of a transaction', () => {
  it.each<[string, MethodDecorator]>([
    ['of @nestjs-cls/transactional', transaction],
    ['of typeorm-transactional', TypeOrmTransactional()],
    ['of the application, in a file named after it', InTransaction()],
  ])('%s is told at boot, in an event and a log line', async (_, decorator) => {
    expect(await warningsOf(serviceWith(decorator, lock))).toEqual(found);
    expect(warn).toHaveBeenCalledTimes(1);
    expect(warn).toHaveBeenCalledWith(expect.stringContaining('released before the commit'));
  });

  it('is told once of a class that has an instance for each request', async () => {
    const type = serviceWith(transaction, lock);
    Injectable({ scope: Scope.REQUEST })(type);
    expect(await warningsOf(type)).toEqual(found);
    await module?.resolve(type);
    expect(warn).toHaveBeenCalledTimes(1);
  });

  it('is not told where its code is silenced, and where no locks are taken', async () => {
    const type = serviceWith(transaction, lock);
    expect(await warningsOf(type, { silencedWarnings: ['lock-inside-transaction'] })).toEqual([]);
    await module?.close();
    expect(await warningsOf(type, { enabled: false })).toEqual([]);
  });
});

it.each<[string, MethodDecorator[]]>([
  ['above the transaction', [lock, transaction]],
  ['above that of MikroORM', [lock, mikroTransaction]],
  ['below another wrapper', [span, lock]],
  ['between @UseCls and the transaction', [onMethod(UseCls()), lock, transaction]],
])('a lock %s gives no warning', async (_, decorators) => {
  expect(await warningsOf(serviceWith(...decorators))).toEqual([]);
});
