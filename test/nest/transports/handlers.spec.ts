import 'reflect-metadata';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  Body,
  type CanActivate,
  ConflictException,
  Controller,
  type ExecutionContext,
  Get,
  Header,
  HttpCode,
  type INestApplication,
  Injectable,
  Param,
  ParseIntPipe,
  Post,
  type Provider,
  Scope,
  SetMetadata,
  type Type,
  UseGuards,
} from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { EventEmitter2, EventEmitterModule, OnEvent } from '@nestjs/event-emitter';
import {
  ClientProxyFactory,
  MessagePattern,
  type MicroserviceOptions,
  Payload,
  Transport,
} from '@nestjs/microservices';
import { Cron, Interval, ScheduleModule } from '@nestjs/schedule';
import { Test } from '@nestjs/testing';
import { setTimeout as sleep } from 'node:timers/promises';
import { lastValueFrom, Observable, timer } from 'rxjs';
import { map } from 'rxjs/operators';
import { DistributedLock, LockModule, MemoryLockStore } from '../../../lib/index.js';
import { deferred } from '../../doubles/deferred.js';
import { Entries } from '../../doubles/entries.js';
import { until } from '../../scenarios/until.js';
import { freePort } from './free-port.js';

let store: MemoryLockStore;
let entries: Entries;
let apps: INestApplication[];
let slowWork: ReturnType<typeof deferred>;

beforeEach(() => {
  store = new MemoryLockStore();
  entries = new Entries();
  apps = [];
  slowWork = deferred();
});

afterEach(async () => {
  await Promise.all(apps.map((app) => app.close()));
});

/** An application with a store that others may share, as instances share one Redis. */
const boot = async (controllers: Type<unknown>[], providers: Provider[] = []) => {
  const module = await Test.createTestingModule({
    imports: [LockModule.forRoot({ store }), ScheduleModule.forRoot(), EventEmitterModule.forRoot()],
    controllers,
    providers,
  }).compile();
  const app = module.createNestApplication();
  app.useLogger(false);
  apps.push(app);
  await app.listen(0, '127.0.0.1');
  const url = await app.getUrl();
  const request = async (path: string, method = 'GET', body?: unknown) => {
    const init =
      body === undefined
        ? {}
        : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
    const response = await fetch(url + path, { method, ...init });
    return { status: response.status, headers: response.headers, body: await response.text() };
  };
  return { app, request };
};

describe('HTTP', () => {
  const Roles = (...roles: string[]) => SetMetadata('roles', roles);

  @Injectable()
  class RolesGuard implements CanActivate {
    constructor(private readonly reflector: Reflector) {}
    canActivate(context: ExecutionContext): boolean {
      const roles = this.reflector.get<string[] | undefined>('roles', context.getHandler());
      return roles?.includes('staff') === true;
    }
  }

  @Controller('shop')
  class ShopController {
    @DistributedLock('above')
    @Get('above')
    @Header('x-shop', 'yes')
    async above() {
      return entries.visit('above');
    }

    @Get('below')
    @DistributedLock('below')
    async below() {
      return entries.visit('below');
    }

    @DistributedLock('item:$<args[0]>')
    @Post('items/:id')
    @HttpCode(202)
    async post(@Param('id', ParseIntPipe) id: number, @Body() body: { count: number }) {
      return entries.visit(`${String(id)} ${String(body.count)} ${typeof id}`);
    }

    @DistributedLock('guarded')
    @UseGuards(RolesGuard)
    @Roles('staff')
    @Get('guarded')
    async guarded() {
      return entries.visit('guarded');
    }

    @DistributedLock('unguarded')
    @UseGuards(RolesGuard)
    @Get('forbidden')
    async forbidden() {
      return entries.visit('forbidden');
    }

    @DistributedLock('throws')
    @Get('throws')
    async throws(): Promise<string> {
      await entries.visit('throws');
      throw new ConflictException({ mine: true, code: 'SEAT_TAKEN' });
    }

    @DistributedLock('stream')
    @Get('stream')
    stream(): Observable<string> {
      entries.enter();
      return timer(5).pipe(
        map(() => {
          entries.leave();
          return 'streamed';
        }),
      );
    }

    @DistributedLock('promised', { returns: 'observable' })
    @Get('promised')
    async promised(): Promise<Observable<string>> {
      await sleep(1);
      entries.enter();
      return timer(5).pipe(
        map(() => {
          entries.leave();
          return 'promised';
        }),
      );
    }

    @DistributedLock('slow')
    @Get('slow')
    async slow() {
      await slowWork.promise;
      return 'slow';
    }
  }

  @Controller({ path: 'scoped', scope: Scope.REQUEST })
  class ScopedController {
    @DistributedLock('scoped')
    @Get()
    async run() {
      return entries.visit('scoped');
    }
  }

  class InheritedController extends ShopController {}
  Controller('inherited')(InheritedController);

  it.each([
    ['/shop/above', 'GET', 'above'],
    ['/shop/below', 'GET', 'below'],
    ['/shop/guarded', 'GET', 'guarded'],
    ['/shop/stream', 'GET', 'streamed'],
    ['/shop/promised', 'GET', 'promised'],
    ['/scoped', 'GET', 'scoped'],
    ['/inherited/above', 'GET', 'above'],
    ['/inherited/below', 'GET', 'below'],
  ])('%s keeps its route and lets one in at a time, over two instances', async (path, method, body) => {
    const controllers = [ShopController, ScopedController, InheritedController];
    const [one, two] = [await boot(controllers), await boot(controllers)];
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, n) => (n % 2 ? one : two).request(path, method)),
    );
    expect(answers.map((answer) => [answer.status, answer.body])).toEqual(answers.map(() => [200, body]));
    expect(entries.total).toBe(8);
    expect(entries.most).toBe(1);
  });

  it('keeps pipes, parameters, headers and status codes', async () => {
    const { request } = await boot([ShopController]);
    expect(await request('/shop/items/7', 'POST', { count: 3 })).toMatchObject({
      status: 202,
      body: '7 3 number',
    });
    expect((await request('/shop/items/x', 'POST', { count: 3 })).status).toBe(400);
    expect((await request('/shop/above')).headers.get('x-shop')).toBe('yes');
    expect((await request('/shop/forbidden')).status).toBe(403);
  });

  it('lets an HttpException through as it is', async () => {
    const { request } = await boot([ShopController]);
    const { status, body } = await request('/shop/throws');
    expect([status, JSON.parse(body)]).toEqual([409, { mine: true, code: 'SEAT_TAKEN' }]);
  });

  it('finishes a request in flight with its lock during app.close()', async () => {
    const { app, request } = await boot([ShopController]);
    const inFlight = request('/shop/slow');
    await until(async () => (await store.inspect('slow')) !== null);
    const closing = app.close();
    await sleep(20);
    expect(await store.inspect('slow')).not.toBeNull();
    slowWork.resolve();
    expect((await inFlight).body).toBe('slow');
    await closing;
    expect(await store.inspect('slow')).toBeNull();
  });
});

describe('schedule', () => {
  it('@Interval and @Cron run one at a time, over two instances', async () => {
    let hasCron = false;
    @Injectable()
    class Jobs {
      @DistributedLock('interval')
      @Interval(10)
      async above() {
        await entries.visit(undefined, 'interval');
      }
      @Interval(10)
      @DistributedLock('interval')
      async below() {
        await entries.visit(undefined, 'interval');
      }
      @Cron('* * * * * *')
      @DistributedLock('cron', { waitTime: 5_000 })
      async cron() {
        await entries.visit(undefined, 'cron', 50);
        hasCron = true;
      }
    }
    await Promise.all([boot([], [Jobs]), boot([], [Jobs])]);
    await until(() => hasCron && entries.total > 10);
    expect(entries.most).toBe(1);
  });
});

describe('events', () => {
  it('@OnEvent runs one at a time, over two instances', async () => {
    @Injectable()
    class Listener {
      @DistributedLock('event:$<args[0].id>')
      @OnEvent('paid')
      async above(event: { id: string }) {
        await entries.visit(undefined, event.id);
      }
      @OnEvent('paid')
      @DistributedLock('event:$<args[0].id>')
      async below(event: { id: string }) {
        await entries.visit(undefined, event.id);
      }
    }
    const [one, two] = [await boot([], [Listener]), await boot([], [Listener])];
    await Promise.all(
      [one, two, one, two].map(({ app }) => app.get(EventEmitter2).emitAsync('paid', { id: '7' })),
    );
    expect(entries.total).toBe(8);
    expect(entries.most).toBe(1);
  });
});

describe('a microservice', () => {
  it('@MessagePattern runs one at a time, and errors pass', async () => {
    @Controller()
    class Messages {
      @DistributedLock('message:$<args[0].id>')
      @MessagePattern('above')
      async above(@Payload() data: { id: number }) {
        return entries.visit(data.id);
      }
      @MessagePattern('below')
      @DistributedLock('message:$<args[0].id>')
      async below(@Payload() data: { id: number }) {
        return entries.visit(data.id);
      }
    }
    const port = await freePort();
    const { app } = await boot([Messages]);
    const options = { host: '127.0.0.1', port };
    app.connectMicroservice<MicroserviceOptions>({ transport: Transport.TCP, options });
    await app.startAllMicroservices();
    const client = ClientProxyFactory.create({ transport: Transport.TCP, options });
    const send = (pattern: string) => lastValueFrom(client.send<number>(pattern, { id: 7 }));
    expect(await Promise.all([send('above'), send('below'), send('above'), send('below')])).toEqual([
      7, 7, 7, 7,
    ]);
    expect(entries.most).toBe(1);
    await client.close();
  });
});
