import 'reflect-metadata';
import { afterEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, type INestApplication, UseInterceptors } from '@nestjs/common';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { currentLease, LockInterceptor, LockModule } from '../../../lib/index.js';

/** Fastify defines a decorator with a getter on the prototype of its requests. */
const decoratedFastify = () => {
  const adapter = new FastifyAdapter();
  adapter.getInstance().decorateRequest('tenant', {
    getter() {
      return `tenant-of-${this.method}`;
    },
  });
  return adapter;
};

const decoratedExpress = () => {
  const adapter = new ExpressAdapter();
  const { request } = adapter.getInstance<{ request: object }>();
  Object.defineProperty(request, 'tenant', {
    get(this: { method: string }) {
      return `tenant-of-${this.method}`;
    },
  });
  return adapter;
};

const SERVERS: [string, () => AbstractHttpAdapter, string, string][] = [
  ['Express', decoratedExpress, 'path', '/orders/7'],
  ['Fastify', decoratedFastify, 'originalUrl', '/orders/7?page=3'],
];

let app: INestApplication;

afterEach(() => app.close());

const answer = async (adapter: AbstractHttpAdapter, key: string) => {
  @Controller('orders')
  class Orders {
    @UseInterceptors(LockInterceptor(key))
    @Get(':id')
    run() {
      return { name: currentLease()?.name };
    }
  }
  const module = await Test.createTestingModule({
    imports: [LockModule.forRoot({ store: 'memory' })],
    controllers: [Orders],
  }).compile();
  app = module.createNestApplication(adapter);
  app.useLogger(false);
  await app.listen(0, '127.0.0.1');
  const response = await fetch(`${await app.getUrl()}/orders/7?page=3`, { headers: { 'x-tenant': 'acme' } });
  const { name, code } = (await response.json()) as { name?: string; code?: string };
  return name ?? code;
};

describe.each(SERVERS)('a key of a request of %s', (_, make, part, value) => {
  it('reads what a getter of its prototype computes', async () => {
    expect(await answer(make(), `$<req.${part}>`)).toBe(value);
    await app.close();
    expect(await answer(make(), '$<req.protocol> $<req.tenant>')).toBe('http tenant-of-GET');
  });

  it('reads its parts', async () => {
    const parts = ['params.id', 'query.page', 'headers["x-tenant"]', 'method', 'url', 'ip', 'hostname'];
    const key = parts.map((path) => `$<req.${path}>`).join(' ');
    expect(await answer(make(), key)).toMatch(/^7 3 acme GET \/orders\/7\?page=3 127\.0\.0\.1 127\.0\.0\.1/);
  });

  it.each(['constructor.name', '__proto__', 'toString'])('does not read %s', async (path) => {
    expect(await answer(make(), `$<req.${path}>`)).toBe('LOCK_KEY');
  });
});
