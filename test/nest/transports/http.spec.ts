import 'reflect-metadata';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Controller, Get, type INestApplication, Param, UseInterceptors } from '@nestjs/common';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { TestingModule } from '@nestjs/testing';
import { STATUS_CODES } from 'node:http';
import { Busy, ErrorLog, type Failure, FAILURES, Invalid, openShop, secretsOf, Shop } from './shop.js';

@Controller()
class Orders {
  constructor(private readonly shop: Shop) {}

  @Get('invalid')
  @UseInterceptors(Invalid())
  invalid() {
    return 'not refused';
  }

  @Get('handler')
  @Busy()
  async handler() {
    return Promise.resolve('not refused');
  }

  @Get(':name')
  service(@Param('name') name: Exclude<Failure['name'], 'invalid'>) {
    return this.shop.fail(name);
  }
}

describe.each<[string, () => AbstractHttpAdapter]>([
  ['Express', () => new ExpressAdapter()],
  ['Fastify', () => new FastifyAdapter()],
])('%s', (_, makeAdapter) => {
  let app: INestApplication;
  const log = ErrorLog.ofEach();

  beforeAll(async () => {
    const make = (module: TestingModule) => module.createNestApplication(makeAdapter());
    app = await openShop({ controllers: [Orders] }, log, make);
  });

  afterAll(() => app.close());

  const request = async (path: string) => {
    const response = await fetch(`${await app.getUrl()}/${path}`);
    const [{ status, headers }, text] = [response, await response.text()];
    return { status, headers, text, body: JSON.parse(text) as unknown };
  };

  it.each(FAILURES)('tells a client: $name', async ({ name, code, status, message, isLogged }) => {
    const answer = await request(name);
    expect(answer.status).toBe(status);
    expect(answer.body).toEqual({ statusCode: status, error: STATUS_CODES[status], message, code });
    for (const secret of secretsOf(app)) expect(answer.text).not.toContain(secret);
    expect(log.errors).toHaveLength(isLogged ? 1 : 0);
  });

  it('says when to try again, where the end of the lease in the way is known', async () => {
    for (const path of ['busy', 'handler']) {
      const { headers } = await request(path);
      const retryAfter = Number(headers.get('retry-after'));
      expect(Number.isInteger(retryAfter)).toBe(true);
      expect(retryAfter).toBeGreaterThanOrEqual(1);
      expect(retryAfter).toBeLessThanOrEqual(25);
    }
    for (const name of ['down', 'closed']) {
      expect((await request(name)).headers.get('retry-after')).toBeNull();
    }
  });
});
