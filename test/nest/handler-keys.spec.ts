import 'reflect-metadata';
import { afterEach, expect, it } from '@jest/globals';
import { Body, Controller, type INestApplication, Injectable, Post } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { DistributedLock, LockModule, OncePer } from '../../lib/index.js';

interface Order {
  id?: string;
}

@Injectable()
class Stock {
  @DistributedLock('stock:$<args[0].id>')
  async reserve(order: Order): Promise<Order> {
    return await Promise.resolve(order);
  }
}

@Controller('orders')
class Orders {
  constructor(private readonly stock: Stock) {}

  @Post('template')
  @DistributedLock('order:$<args[0].id>')
  async template(@Body() order: Order): Promise<Order> {
    return await Promise.resolve(order);
  }

  @DistributedLock(async ({ id = '' }: Order) => Promise.resolve(id))
  @Post('function')
  async function(@Body() order: Order): Promise<Order> {
    return await Promise.resolve(order);
  }

  @Post('period')
  @OncePer('order:$<args[0].id>', { period: '1h' })
  async period(@Body() order: Order): Promise<Order | undefined> {
    return await Promise.resolve(order);
  }

  @Post('of-the-object')
  @DistributedLock('order:$<this.missing>')
  async ofTheObject(@Body() order: Order): Promise<Order> {
    return await Promise.resolve(order);
  }

  @Post('below')
  async below(@Body() order: Order) {
    await this.stock.reserve(order);
  }
}

let app: INestApplication;

afterEach(() => app.close());

it.each([
  ['template', 400],
  ['function', 400],
  ['period', 400],
  ['of-the-object', 500],
  ['below', 500],
])(
  'a request without a usable key is answered on a handler with the key of a %s: %d',
  async (path, status) => {
    const module = await Test.createTestingModule({
      imports: [LockModule.forRoot({ store: 'memory' })],
      controllers: [Orders],
      providers: [Stock],
    }).compile();
    app = module.createNestApplication();
    await app.listen(0, '127.0.0.1');
    const response = await fetch(`${await app.getUrl()}/orders/${path}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ id: '' }),
    });
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ statusCode: status, code: 'LOCK_KEY' });
  },
);
