import 'reflect-metadata';
import { Controller, Get, Injectable, mixin, Module, type Type, UseInterceptors } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DistributedLock, LockInterceptor, LockModule, OncePer } from '../../../lib/index.js';
import { Orders as OtherOrders } from './orders.js';

@Injectable()
class Orders {
  @OncePer('$<class>.nightly', { period: '1d' })
  async nightly(): Promise<void> {
    await Promise.resolve();
  }
}

/** A written name that a minifier may have made. */
@Injectable()
class Job {
  @DistributedLock('$<class>.$<method>')
  async nightly(): Promise<void> {
    await Promise.resolve();
  }
}

@Injectable()
class Reports {
  @DistributedLock((id: string) => `report:${id}`)
  async make(id: string): Promise<void> {
    await Promise.resolve(id);
  }
}

@Injectable()
class Labelled {
  @DistributedLock((id: string) => `report:${id}`, { label: 'report' })
  async make(id: string): Promise<void> {
    await Promise.resolve(id);
  }
}

@Injectable()
class Written {
  @DistributedLock('written.$<method>')
  async run(): Promise<void> {
    await Promise.resolve();
  }
}

@Controller()
@UseInterceptors(LockInterceptor('$<class>.$<method>'))
class Carts {
  @Get()
  get(): string {
    return 'cart';
  }
}

@Injectable()
class Mixed {
  @DistributedLock('$<class>.$<method>')
  async run(): Promise<void> {
    await Promise.resolve();
  }
}

/** What the boot says of an application with these classes. */
async function bootOf(...types: Type[]): Promise<string> {
  const isController = (type: Type) => type === Carts;
  @Module({
    imports: [LockModule.forRoot({ store: 'memory' })],
    providers: types.filter((type) => !isController(type)),
    controllers: types.filter(isController),
  })
  class App {}
  const options = { logger: false, abortOnError: false } as const;
  try {
    const app = await NestFactory.createApplicationContext(App, options);
    await app.close();
    return 'up';
  } catch (error) {
    return (error as Error).message;
  }
}

const answers = {
  orders: await bootOf(Orders),
  job: await bootOf(Job),
  reports: await bootOf(Reports),
  labelled: await bootOf(Labelled),
  written: await bootOf(Written),
  carts: await bootOf(Carts),
  mixed: await bootOf(mixin(Mixed)),
  both: await bootOf(Orders, OtherOrders),
};
process.stdout.write(JSON.stringify(answers));
