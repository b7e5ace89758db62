import 'reflect-metadata';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  type ArgumentsHost,
  Catch,
  Controller,
  type ExceptionFilter,
  Get,
  HttpException,
  type INestApplication,
  type INestMicroservice,
  Module,
  type ModuleMetadata,
  type NestHybridApplicationOptions,
  type Type,
  UseFilters,
} from '@nestjs/common';
import { APP_FILTER, ExternalContextCreator } from '@nestjs/core';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import {
  ClientProxyFactory,
  MessagePattern,
  type MicroserviceOptions,
  Transport,
} from '@nestjs/microservices';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { WsAdapter } from '@nestjs/platform-ws';
import { Test } from '@nestjs/testing';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { once } from 'node:events';
import { lastValueFrom, throwError } from 'rxjs';
import { WebSocket } from 'ws';
import {
  LockError,
  LockExceptionFilter,
  LockModule,
  LockService,
  LockTimeoutError,
  MemoryLockStore,
} from '../../../lib/index.js';
import { freePort } from './free-port.js';
import { Busy, startMicroservice } from './shop.js';

const OWN = { own: 'answer' };

/** The answer of an application's own filter. */
class OwnFilter implements ExceptionFilter {
  catch(_error: unknown, host: ArgumentsHost) {
    if (host.getType() === 'rpc') return throwError(() => OWN);
    if (host.getType() === 'ws') {
      host.switchToWs().getClient<WebSocket>().send(JSON.stringify(OWN));
      return undefined;
    }
    const response = host
      .switchToHttp()
      .getResponse<{ status(code: number): { send(body: object): void } }>();
    response.status(418).send(OWN);
    return undefined;
  }
}

@Catch()
class CatchAll extends OwnFilter {}
@Catch(LockError)
class CatchLockError extends OwnFilter {}
@Catch(LockTimeoutError)
class CatchTimeout extends OwnFilter {}
@Catch(HttpException)
class CatchHttp extends OwnFilter {}
@Catch(SyntaxError)
class CatchOthers extends OwnFilter {}

const own: [string, Type<ExceptionFilter>][] = [
  ['everything', CatchAll],
  ['LockError', CatchLockError],
  ['LockTimeoutError', CatchTimeout],
  ['HttpException', CatchHttp],
];

@Controller()
class Orders {
  @Busy()
  @MessagePattern('pay')
  @Get()
  async pay() {
    return Promise.resolve('not refused');
  }
}

let apps: (INestApplication | INestMicroservice)[];

beforeEach(() => {
  apps = [];
});

afterEach(async () => {
  await Promise.all(apps.map((app) => app.close()));
});

const modules = () => {
  const store = new MemoryLockStore();
  return [LockModule.forRoot({ store }), LockModule.forRoot({ store, name: 'second' })];
};

const compile = (metadata: ModuleMetadata) => {
  // The filter of the application is bound before the one of the imported module, as in most applications.
  @Module({ controllers: [Orders], ...metadata, imports: modules() })
  class AppModule {}
  return Test.createTestingModule({ imports: [AppModule] }).compile();
};

const started = async <App extends INestApplication | INestMicroservice>(app: App): Promise<App> => {
  apps.push(app);
  await app.get(LockService).acquire('order:4711');
  return app;
};

const serve = async (
  metadata: ModuleMetadata = {},
  configure: (app: INestApplication) => unknown = () => undefined,
  adapter?: FastifyAdapter,
) => {
  const module = await compile(metadata);
  const app = adapter === undefined ? module.createNestApplication() : module.createNestApplication(adapter);
  await configure(app);
  await app.listen(0, '127.0.0.1');
  return started(app);
};

const get = async (app: INestApplication) => {
  const response = await fetch(await app.getUrl());
  return await response.json();
};

describe('HTTP', () => {
  it.each(own)('leaves the answer to a filter of the application that catches %s', async (_, Filter) => {
    expect(await get(await serve({ providers: [{ provide: APP_FILTER, useClass: Filter }] }))).toEqual(OWN);
    expect(await get(await serve({}, (app) => app.useGlobalFilters(new Filter())))).toEqual(OWN);

    @UseFilters(Filter)
    class FilteredOrders extends Orders {}
    Controller()(FilteredOrders);
    expect(await get(await serve({ controllers: [FilteredOrders] }))).toEqual(OWN);
  });

  it('answers where the filters of the application catch something else', async () => {
    const app = await serve({ providers: [{ provide: APP_FILTER, useClass: CatchOthers }] });
    expect(await get(app)).toMatchObject({ code: 'LOCK_TIMEOUT' });
  });

  it.each([
    ['Express', () => undefined],
    ['Fastify', () => new FastifyAdapter()],
  ])('answers by a filter that Nest has not made, on %s', async (_, makeAdapter) => {
    @UseFilters(new LockExceptionFilter())
    class FilteredOrders extends Orders {}
    Controller()(FilteredOrders);
    const app = await serve({ controllers: [FilteredOrders] }, undefined, makeAdapter());
    const response = await fetch(await app.getUrl());
    expect([response.status, await response.json()]).toMatchObject([409, { code: 'LOCK_TIMEOUT' }]);
    expect(response.headers.get('retry-after')).toBe('30');
  });

  it('throws the error on for a transport that it does not know, with no more than its public parts for GraphQL', () => {
    const error = new LockTimeoutError('order:4711', 0);
    const caught = (type: string, response = {}) => {
      const host = new ExecutionContextHost([{}, response, () => undefined]);
      host.setType(type);
      const filter: ExceptionFilter = new LockExceptionFilter();
      return () => filter.catch(error, host) as unknown;
    };
    expect(caught('telegram')).toThrow(error);
    const extensions = { code: 'LOCK_TIMEOUT', http: { status: 409 } };
    const { name, publicMessage: message } = error;
    expect(caught('graphql')).toThrow(expect.objectContaining({ name, message, extensions }));
    // An answer of HTTP that has begun is only ended.
    let ends = 0;
    const end = () => ends++;
    for (const response of [
      { headersSent: true, end },
      { sent: true, raw: { end } },
    ])
      caught('http', response)();
    expect(ends).toBe(2);
  });
});

it.each([[[]], [['one']], [['one', null, 'three']], [['one', 'two', 'three']]])(
  'What calls a handler by itself, with %j, gets the error',
  async (args) => {
    const app = await serve();
    const orders = app.get(Orders);
    const call = app.get(ExternalContextCreator).create(orders, orders.pay, 'pay');
    await expect(call(...args)).rejects.toBeInstanceOf(LockTimeoutError);
  },
);

describe('a microservice', () => {
  const ask = async (port: number): Promise<unknown> => {
    const options = { host: '127.0.0.1', port };
    const client = ClientProxyFactory.create({ transport: Transport.TCP, options });
    try {
      return await lastValueFrom(client.send<unknown>('pay', {}));
    } catch (error) {
      return error;
    } finally {
      await client.close();
    }
  };

  const tcp = async (): Promise<MicroserviceOptions & { options: { port: number } }> => ({
    transport: Transport.TCP,
    options: { host: '127.0.0.1', port: await freePort() },
  });

  const askHybrid = async (metadata: ModuleMetadata, hybrid: NestHybridApplicationOptions = {}) => {
    const options = await tcp();
    await serve(metadata, async (app) => {
      app.connectMicroservice<MicroserviceOptions>(options, hybrid);
      await app.startAllMicroservices();
    });
    return ask(options.options.port);
  };

  it.each(own)('leaves the answer to a filter of the application that catches %s', async (_, Filter) => {
    const options = await tcp();
    const module = await compile({ providers: [{ provide: APP_FILTER, useClass: Filter }] });
    await started(await startMicroservice(module, options));
    expect(await ask(options.options.port)).toEqual(OWN);
  });

  it('of a hybrid application inherits the answers, or the filter of the application', async () => {
    expect(await askHybrid({}, { inheritAppConfig: true })).toMatchObject({ code: 'LOCK_TIMEOUT' });
    const providers = [{ provide: APP_FILTER, useClass: CatchAll }];
    expect(await askHybrid({ providers }, { inheritAppConfig: true })).toEqual(OWN);
  });

  it('of a hybrid application that inherits nothing needs the filter at the controller', async () => {
    @UseFilters(LockExceptionFilter)
    class FilteredOrders extends Orders {}
    Controller()(FilteredOrders);
    expect(await askHybrid({ controllers: [FilteredOrders] })).toMatchObject({ code: 'LOCK_TIMEOUT' });
    expect(await askHybrid({})).toEqual({ status: 'error', message: 'Internal server error' });
  });
});

describe('a gateway', () => {
  const ask = async (gateway: Type<unknown>): Promise<unknown> => {
    const app = await serve({ controllers: [], providers: [gateway] }, (app) =>
      app.useWebSocketAdapter(new WsAdapter(app)),
    );
    const socket = new WebSocket((await app.getUrl()).replace('http', 'ws'));
    await once(socket, 'open');
    socket.send(JSON.stringify({ event: 'pay', data: {} }));
    const [message] = (await once(socket, 'message')) as [Buffer];
    socket.close();
    await once(socket, 'close');
    return JSON.parse(String(message));
  };

  @WebSocketGateway()
  class Payments {
    @Busy()
    @SubscribeMessage('pay')
    async pay() {
      return Promise.resolve('not refused');
    }
  }

  it.each(own)('leaves the answer to a filter of its own that catches %s', async (_, Filter) => {
    @UseFilters(Filter)
    class FilteredPayments extends Payments {}
    WebSocketGateway()(FilteredPayments);
    expect(await ask(FilteredPayments)).toEqual(OWN);

    @WebSocketGateway()
    class FilteredMethod {
      @UseFilters(Filter)
      @Busy()
      @SubscribeMessage('pay')
      async pay() {
        return Promise.resolve('not refused');
      }
    }
    expect(await ask(FilteredMethod)).toEqual(OWN);
  });
});
