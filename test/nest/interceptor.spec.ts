import 'reflect-metadata';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import {
  type CallHandler,
  Controller,
  type ExecutionContext,
  Get,
  HttpException,
  type INestApplication,
  Logger,
  type NestInterceptor,
  Param,
  Post,
  type Provider,
  type Type,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { APP_INTERCEPTOR } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { PassThrough } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { timeout } from 'rxjs';
import { assertLocked, currentLease, LockInterceptor, LockModule, LockService } from '../../lib/index.js';
import { deferred } from '../doubles/deferred.js';
import { Entries } from '../doubles/entries.js';
import { until } from '../scenarios/until.js';

let entries: Entries;
let app: INestApplication | undefined;

beforeEach(() => {
  entries = new Entries();
});

afterEach(async () => {
  await app?.close();
  app = undefined;
});

const testing = async (controllers: Type<unknown>[], providers: Provider[] = []) => {
  const imports = [LockModule.forRoot({ store: 'memory' })];
  const module = await Test.createTestingModule({ imports, controllers, providers }).compile();
  const made = module.createNestApplication();
  made.useLogger(false);
  return made;
};

const serve = async (controller: Type<unknown>, global?: Type<NestInterceptor>) => {
  app = await testing(
    [controller],
    global === undefined ? [] : [{ provide: APP_INTERCEPTOR, useClass: global }],
  );
  await app.listen(0, '127.0.0.1');
  const url = await app.getUrl();
  return async (path: string, init: RequestInit = {}) => {
    const response = await fetch(url + path, init);
    return { status: response.status, text: await response.text() };
  };
};

describe('LockInterceptor', () => {
  it('locks a handler by parts of its request', async () => {
    @Controller('orders')
    class Orders {
      @UseInterceptors(LockInterceptor('order:$<req.params.id>:$<req.headers["x-tenant"]>'))
      @Post(':id')
      async pay(@Param('id') id: string) {
        assertLocked(`order:${id}:acme`);
        return entries.visit(currentLease()?.name, id);
      }
    }
    const request = await serve(Orders);
    const pay = (id: string) => request(`/orders/${id}`, { method: 'POST', headers: { 'x-tenant': 'acme' } });
    const answers = await Promise.all(['1', '1', '2', '1'].map(pay));
    expect(answers.map(({ text }) => text)).toEqual(['1', '1', '2', '1'].map((id) => `order:${id}:acme`));
    expect(entries.most).toBe(1);
    // Without the header there is no key, and the handler does not run.
    const refused = await request('/orders/1', { method: 'POST' });
    expect(refused.status).toBe(400);
    expect(JSON.parse(refused.text)).toEqual({
      statusCode: 400,
      error: 'Bad Request',
      message: 'The request lacks a value that it needs, or has one that cannot be used',
      code: 'LOCK_KEY',
    });
    expect(entries.total).toBe(4);
  });

  it('locks all the handlers of a controller, and all of an application', async () => {
    const Guarded = LockInterceptor('$<class>.$<method>');
    @Controller('one')
    @UseInterceptors(Guarded)
    class One {
      @Get()
      async run() {
        return entries.visit(currentLease()?.name);
      }
    }
    @Controller('two')
    class Two {
      @Get()
      async run() {
        return entries.visit(currentLease()?.name);
      }
    }
    let request = await serve(One);
    expect((await Promise.all([request('/one'), request('/one')])).map(({ text }) => text)).toEqual([
      'One.run',
      'One.run',
    ]);
    await app?.close();
    request = await serve(Two, Guarded);
    expect((await Promise.all([request('/two'), request('/two')])).map(({ text }) => text)).toEqual([
      'Two.run',
      'Two.run',
    ]);
    expect(entries.most).toBe(1);
  });

  it.each([
    ['of each handler', false, '$<class>.run', /another class is named "Jobs" and has the same key/],
    ['of all handlers', true, '$<class>.$<method>', /another class is named "Jobs" and has the same key/],
    ['of handlers with other names', false, '$<class>.$<method>', undefined],
  ])(
    'refuses $<class> of two classes with one name at boot, on keys %s',
    async (_, onClass, key, refusal) => {
      const Guarded = LockInterceptor(key);
      const jobs = (path: string, method: string) => {
        class Jobs {
          run() {
            return path;
          }
          retry() {
            return path;
          }
        }
        const descriptor = Object.getOwnPropertyDescriptor(Jobs.prototype, method) ?? {};
        Get(path)(Jobs.prototype, method, descriptor);
        if (onClass) UseInterceptors(Guarded)(Jobs);
        else UseInterceptors(Guarded)(Jobs.prototype, method, descriptor);
        Controller()(Jobs);
        return Jobs;
      };
      const booted = testing([jobs('a', 'run'), jobs('b', refusal === undefined ? 'retry' : 'run')]).then(
        (made) => made.init(),
      );
      if (refusal === undefined) app = await booted;
      else await expect(booted).rejects.toThrow(refusal);
    },
  );

  it('answers 409 when busy, or what onBusy says', async () => {
    @Controller()
    class Jobs {
      @UseInterceptors(LockInterceptor('a', { waitTime: 0 }))
      @Get('throw')
      throwing() {
        return 'ran';
      }
      @UseInterceptors(LockInterceptor('a', { waitTime: 0, onBusy: () => 'already running' }))
      @Get('answer')
      answering() {
        return 'ran';
      }
    }
    const request = await serve(Jobs);
    const lease = await app!.get(LockService).acquire('a');
    expect((await request('/throw')).status).toBe(409);
    expect(await request('/answer')).toEqual({ status: 200, text: 'already running' });
    await lease.release();
    expect((await request('/answer')).text).toBe('ran');
  });

  it.each([
    ['skips', 'skip'],
    ['has a function that gives nothing', () => undefined],
  ] as const)('answers without content when busy and it %s', async (_, onBusy) => {
    @Controller()
    class Jobs {
      @UseInterceptors(LockInterceptor('a', { waitTime: 0, onBusy }))
      @Get('run')
      run() {
        return 'ran';
      }
    }
    const request = await serve(Jobs);
    const lease = await app!.get(LockService).acquire('a');
    expect(await request('/run')).toEqual({ status: 200, text: '' });
    await lease.release();
    expect(await request('/run')).toEqual({ status: 200, text: 'ran' });
  });

  it('takes a function of the ExecutionContext', async () => {
    @Controller()
    class Jobs {
      @UseInterceptors(LockInterceptor((context) => `handler:${context.getHandler().name}`))
      @Get('run')
      run() {
        return currentLease()?.name;
      }
    }
    expect((await (await serve(Jobs))('/run')).text).toBe('handler:run');
  });

  it('refuses a malformed key and wrong options where it is made', () => {
    expect(() => LockInterceptor('$<this.id>')).toThrow(/starts with req, args, class, method/);
    expect(() => LockInterceptor('a', { onBusy: 'wait' as never })).toThrow(/onBusy/);
    expect(() => LockInterceptor('a', { kind: 'mutex' as never })).toThrow(/kind/);
    expect(() => LockInterceptor('a', { returns: 'promise' } as object)).toThrow(
      /returns.*is not an option of LockInterceptor/,
    );
    expect(() => LockInterceptor('a', null as never)).toThrow(/options: must be an object \(found: null\)/);
  });
});

describe('a request that gives no usable key', () => {
  const tenant = 'order:$<req.headers["x-tenant"]>';

  it('is logged once for each handler, in one line', async () => {
    @UseInterceptors(LockInterceptor(tenant))
    @Controller('orders')
    class Orders {
      @Get('one')
      one() {
        return 1;
      }

      @Get('two')
      two() {
        return 2;
      }
    }
    const request = await serve(Orders);
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    for (const path of ['one', 'one', 'two']) expect((await request(`/orders/${path}`)).status).toBe(400);
    const lines = warn.mock.calls.map(([line]) => line as string);
    warn.mockRestore();
    expect(lines.map((line) => line.slice(0, 'Orders.one has answered 400'.length))).toEqual([
      'Orders.one has answered 400',
      'Orders.two has answered 400',
    ]);
  });

  it('fails as onKeyError says', async () => {
    const failures: unknown[] = [];
    const locking = LockInterceptor(tenant, {
      onKeyError: ({ error, context }) => {
        failures.push([error.code, context.getHandler().name]);
        return new HttpException('Which tenant?', 428);
      },
    });
    @UseInterceptors(locking)
    @Controller('orders')
    class Orders {
      @Get()
      all() {
        return [];
      }
    }
    const request = await serve(Orders);
    expect(await request('/orders')).toMatchObject({ status: 428 });
    expect(failures).toEqual([['LOCK_KEY', 'all']]);
  });

  it('refuses an onKeyError that is no function', () => {
    expect(() => LockInterceptor(tenant, { onKeyError: 400 as never })).toThrow(
      /^onKeyError: must be a function/,
    );
  });
});

describe('a client that closes its request', () => {
  const ran: string[] = [];
  const gate = deferred();

  @Controller('jobs')
  @UseInterceptors(LockInterceptor('job:$<req.params.id>'))
  class Jobs {
    @Get(':id')
    async run(@Param('id') id: string) {
      ran.push(id);
      if (id === '3') await gate.promise;
      ran.push(`${id} ended, held: ${String(currentLease()?.held)}`);
      return id;
    }
  }

  it('while it waits leaves the queue, and its handler never runs', async () => {
    const request = await serve(Jobs);
    const locks = app!.get(LockService);
    const held = await locks.acquire('job:1');
    const client = new AbortController();
    const waiting = request('/jobs/1', { signal: client.signal }).catch((error: unknown) => error);
    await until(async () => (await locks.health()).waiting === 1);
    client.abort();
    await waiting;
    await until(async () => (await locks.health()).waiting === 0);
    await held.release();
    expect(await request('/jobs/2')).toMatchObject({ status: 200 });
    expect(ran.filter((id) => id.startsWith('1'))).toEqual([]);
  });

  it('while a guard runs does not wait at all, and its handler never runs', async () => {
    let guarding = false;
    @Controller('guarded')
    class Guarded {
      @Get()
      @UseGuards({
        canActivate: async (context: ExecutionContext) => {
          guarding = true;
          await once(context.switchToHttp().getResponse<ServerResponse>(), 'close');
          return true;
        },
      })
      @UseInterceptors(LockInterceptor('guarded'))
      run() {
        ran.push('guarded');
      }
    }
    const request = await serve(Guarded);
    const locks = app!.get(LockService);
    const joined = jest.spyOn(locks, 'using');
    const held = await locks.acquire('guarded');
    const client = new AbortController();
    const waiting = request('/guarded', { signal: client.signal }).catch((error: unknown) => error);
    await until(() => guarding);
    client.abort();
    await waiting;
    await until(() => joined.mock.results.length === 1);
    await expect(joined.mock.results[0]?.value).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
    await held.release();
    expect(ran).not.toContain('guarded');
  });

  it('while the handler runs does not interrupt it, and the lock stays until it has ended', async () => {
    const request = await serve(Jobs);
    const locks = app!.get(LockService);
    const client = new AbortController();
    const running = request('/jobs/3', { signal: client.signal }).catch((error: unknown) => error);
    await until(() => ran.includes('3'));
    client.abort();
    await running;
    expect(await locks.getLock('job:3').isLocked()).toBe(true);
    gate.resolve();
    await until(async () => !(await locks.getLock('job:3').isLocked()));
    expect(ran).toContain('3 ended, held: true');
  });
});

describe('A handler whose answer is not waited for any more', () => {
  class TimeLimit implements NestInterceptor {
    intercept(_context: ExecutionContext, next: CallHandler) {
      return next.handle().pipe(timeout(50));
    }
  }

  let left: string[];

  @Controller('slow')
  @UseInterceptors(TimeLimit, LockInterceptor('$<method>'))
  class Slow {
    @Get('promise')
    async promise(): Promise<string> {
      return entries.visit('done', 'promise', 150);
    }

    @Get('passed-on')
    passedOn() {
      return entries.visit('done', 'passedOn', 150);
    }

    @Get('file')
    async file() {
      const stream = new PassThrough();
      stream.on('close', () => left.push('file'));
      return entries.visit(stream, 'file', 150);
    }
  }

  beforeEach(() => {
    left = [];
  });

  it.each(['promise', 'passed-on', 'file'])('keeps its lock until its Promise settles (%s)', async (path) => {
    const request = await serve(Slow);
    const locks = app!.get(LockService);
    const answers = [request(`/slow/${path}`), sleep(60).then(() => request(`/slow/${path}`))];
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([500, 500]);
    await until(() => locks.leases().length === 0);
    expect(entries.most).toBe(1);
    expect([...new Set(left)]).toEqual(path === 'file' ? ['file'] : []);
  });
});
