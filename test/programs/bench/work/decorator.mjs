import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DistributedLock, LockModule, LockService } from '../../../../dist/index.js';
import { slices } from './slices.mjs';

class Orders {
  async pay() {
    return undefined;
  }
}
const method = Object.getOwnPropertyDescriptor(Orders.prototype, 'pay');
Reflect.defineMetadata('design:returntype', Promise, Orders.prototype, 'pay');
const decorated = DistributedLock('order:$<args[0]>')(Orders.prototype, 'pay', method) ?? method;
Object.defineProperty(Orders.prototype, 'pay', decorated);

/** A decorated method beside the same lock taken with `using`, both in memory, so that nothing else is in the way. */
export async function play({ params: { times } }) {
  class App {}
  Module({ imports: [LockModule.forRoot({ store: 'memory' })], providers: [Orders] })(App);
  const app = await NestFactory.createApplicationContext(App, { logger: false });
  const [orders, locks] = [app.get(Orders), app.get(LockService)];
  const plain = async () => undefined;
  const [decorated, using] = await slices(
    times,
    () => orders.pay(7),
    () => locks.using('order:7', plain),
  );
  await app.close();
  return { decorated, using };
}
