import 'reflect-metadata';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Controller, Get, type INestApplication, Param, Post } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { LockModule, LockService, LockUnavailableError } from '../../lib/index.js';
import { deferred } from '../doubles/deferred.js';
import { ScriptedStore } from '../doubles/scripted-store.js';
import { until } from '../scenarios/until.js';

const [begun, gate] = [deferred(), deferred()];

@Controller('orders')
class OrdersController {
  constructor(private readonly locks: LockService) {}

  @Get('slow')
  slow() {
    return this.locks.using('slow', async (lease) => {
      begun.resolve();
      await gate.promise;
      return { held: lease.held };
    });
  }

  @Post(':id')
  pay(@Param('id') id: string) {
    return this.locks.using(`order:${id}`, { waitTime: 10 }, () => ({ paid: id }));
  }
}

const store = new ScriptedStore();
let app: INestApplication;
let url: string;

const request = async (path: string, method = 'POST') => {
  const response = await fetch(url + path, { method });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
};

beforeAll(async () => {
  const module = await Test.createTestingModule({
    imports: [LockModule.forRoot({ store })],
    controllers: [OrdersController],
  }).compile();
  app = module.createNestApplication();
  app.useLogger(false);
  await app.listen(0, '127.0.0.1');
  url = `${await app.getUrl()}/orders/`;
});

afterAll(() => app.close());

describe('errors answer for themselves, without a filter', () => {
  it('a busy lock is 409, and tells a stranger nothing', async () => {
    const lease = await app.get(LockService).acquire('order:7');
    const { status, body } = await request('7');
    expect(status).toBe(409);
    expect(body).toEqual({
      statusCode: 409,
      error: 'Conflict',
      message: 'The resource is busy, try again later',
      code: 'LOCK_TIMEOUT',
    });
    expect(JSON.stringify(body)).not.toContain(lease.owner);
    await lease.release();
    expect((await request('7')).status).toBe(201);
  });

  it('a store that does not answer is 503', async () => {
    store.beforeAcquire = () => {
      throw new LockUnavailableError('order:8', { cause: new Error('connect ECONNREFUSED 10.1.2.3:6379') });
    };
    const { status, body } = await request('8');
    store.beforeAcquire = () => undefined;
    expect(status).toBe(503);
    expect(JSON.stringify(body)).not.toMatch(/order|6379/);
  });

  it('a wrong name is 500, and its message stays inside', async () => {
    const { status, body } = await request(`%20${'x'.repeat(1_100)}`);
    expect(status).toBe(500);
    expect(JSON.stringify(body)).not.toContain('xxx');
  });
});

it('app.close() lets a request in flight finish with its lock, and gives out none afterwards', async () => {
  const locks = app.get(LockService);
  const inFlight = request('slow', 'GET');
  await begun.promise;
  const closing = app.close();
  await until(async () => (await locks.health()).status === 'down');
  expect(await store.inspect('slow')).not.toBeNull();
  gate.resolve();
  expect((await inFlight).body).toEqual({ held: true });
  await closing;
  await expect(locks.acquire('b')).rejects.toMatchObject({ code: 'LOCK_CLOSED', status: 503 });
  expect(await store.inspect('slow')).toBeNull();
});
