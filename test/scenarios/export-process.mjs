// One process of an application as docs/guide/recipes/bullmq.md shows it. LockModule is imported first or last.
import 'reflect-metadata';
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { BullModule, Processor, WorkerHost } from '@nestjs/bullmq';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Redis } from 'ioredis';
import { DistributedLock, LockModule } from 'nestjs-distributed-lock';

const [url, order] = process.argv.slice(2);
const { hostname: host, port } = new URL(url);
const resource = new Redis(url);

class Exports extends WorkerHost {
  async process({ data: { customer, time } }) {
    const inside = `inside:${customer}`;
    if ((await resource.incr(inside)) > 1) await resource.incr('overlaps');
    await sleep(time);
    await this.book();
    await resource.decr(inside);
    return `exported for ${customer}`;
  }

  /** Begins late in the job, mostly when the application shuts down already. */
  async book() {
    await sleep(5);
  }
}
const decorate = (name, key, options) => {
  const property = Object.getOwnPropertyDescriptor(Exports.prototype, name);
  const decorator = DistributedLock(key, options);
  const decorated = decorator(Exports.prototype, name, property) ?? property;
  Object.defineProperty(Exports.prototype, name, decorated);
};
Reflect.defineMetadata('design:returntype', Promise, Exports.prototype, 'process');
Reflect.defineMetadata('design:returntype', Promise, Exports.prototype, 'book');
decorate('process', 'export:$<args[0].data.customer>', { waitTime: '5s', onLost: 'throw' });
decorate('book', 'ledger', { waitTime: '5s', onLost: 'throw' });
Processor('exports', { concurrency: 4 })(Exports);

const locks = LockModule.forRoot({ connection: url });
const queues = [
  BullModule.forRoot({ connection: { host, port: Number(port) } }),
  BullModule.registerQueue({ name: 'exports' }),
];
class AppModule {}
Module({ imports: order === 'first' ? [locks, ...queues] : [...queues, locks], providers: [Exports] })(
  AppModule,
);

const app = await NestFactory.createApplicationContext(AppModule, { logger: ['error', 'warn'] });
app.enableShutdownHooks();
// The version of Nest says that it is ready.
const { version } = createRequire(import.meta.resolve('@nestjs/core'))('@nestjs/core/package.json');
process.send(version);
// The channel to the test keeps no process alive.
process.channel.unref();
