import 'reflect-metadata';
import { afterEach, describe, expect, it } from '@jest/globals';
import {
  type CallHandler,
  Controller,
  type ExecutionContext,
  Get,
  Injectable,
  Logger,
  type Type,
  UseInterceptors,
} from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { lastValueFrom, of } from 'rxjs';
import {
  currentLease,
  DistributedLock,
  LockInterceptor,
  LockModule,
  type LockModuleOptions,
  LockService,
} from '../../lib/index.js';
import { ScriptedStore } from '../doubles/scripted-store.js';
import { useVirtualTime } from '../support/virtual-time.js';

useVirtualTime();

let app: TestingModule | undefined;

afterEach(async () => {
  await app?.close();
  app = undefined;
});

const compile = async (options: Partial<LockModuleOptions>, ...types: Type[]) => {
  const module = Test.createTestingModule({
    imports: [LockModule.forRoot({ store: 'memory', ...options })],
    providers: types,
  });
  app = await module.compile();
  await app.init();
  return app;
};

const make = async <T>(options: Partial<LockModuleOptions>, type: Type<T>) =>
  (await compile(options, type)).get(type);

const holding = async <T>(name: string, run: () => Promise<T>): Promise<T> => {
  const lease = await app!.get(LockService).acquire(name);
  return run().finally(() => lease.release());
};

describe('a preset', () => {
  const presets = { job: { waitTime: 0, onBusy: 'skip' }, slow: { waitTime: '1m' } } as const;

  @Injectable()
  class Jobs {
    @DistributedLock('a', 'job')
    async byName(): Promise<string | undefined> {
      return Promise.resolve('done');
    }

    @DistributedLock('a', { preset: 'job', onBusy: () => 'instead' })
    async refined(): Promise<string> {
      return Promise.resolve('done');
    }

    @DistributedLock('a', () => 'job')
    async ofTheCall(): Promise<string> {
      return Promise.resolve('done');
    }
  }

  it('gives its options, after those beside its name', async () => {
    const jobs = await make({ presets }, Jobs);
    expect(await jobs.byName()).toBe('done');
    await holding('a', async () => {
      expect(await jobs.byName()).toBeUndefined();
      expect(await jobs.refined()).toBe('instead');
      expect(await jobs.ofTheCall()).toBeUndefined();
    });
  });

  it('that the module does not have fails the boot, with those that it has', async () => {
    await expect(compile({ presets: { slow: {}, quick: {} } }, Jobs)).rejects.toThrow(
      /@DistributedLock on Jobs\.(byName|refined): preset: "job" is not among the presets of the module \(there are: slow, quick\)/,
    );
    await expect(compile({}, Jobs)).rejects.toThrow(/there are: none/);
  });

  it('that the module does not have fails the boot of an interceptor', async () => {
    @Controller('a')
    @UseInterceptors(LockInterceptor('a', 'job'))
    class Carts {
      @Get()
      get() {
        return 1;
      }
    }
    const module = Test.createTestingModule({
      imports: [LockModule.forRoot({ store: 'memory' })],
      controllers: [Carts],
    });
    await expect(module.compile()).rejects.toThrow(/preset: "job" is not among/);
  });

  it('asks for its kind at boot', async () => {
    const store = new ScriptedStore();
    Object.defineProperty(store, 'queues', { value: undefined });
    Object.defineProperty(store, 'noQueues', { value: 'has none' });
    await expect(compile({ store, presets: { job: { kind: 'fair' } } }, Jobs)).rejects.toThrow(
      /@DistributedLock on Jobs\./,
    );
  });

  it.each([
    ['an unknown option', { job: { waitTme: 0 } }, /presets\.job: waitTme: .*did you mean waitTime/],
    ['a wrong value', { job: { leaseTime: -1 } }, /presets\.job: leaseTime/],
    ['another instance', { job: { instance: 'b' } }, /presets\.job: instance: is not an option of a preset/],
    ['what is known at the method only', { job: { returns: 'promise' } }, /presets\.job: returns/],
    ['a time beyond maxHoldTime', { job: { minHoldTime: '2d' } }, /presets\.job: minHoldTime: .*maxHoldTime/],
    ['no options', { job: 5 }, /presets\.job: options/],
    ['no object', ['job'], /presets: must be an object/],
  ])('is refused with %s', (_, wrong, message) => {
    expect(() => LockModule.forRoot({ store: 'memory', maxHoldTime: '1d', presets: wrong as never })).toThrow(
      message,
    );
  });
});

describe('options of the call', () => {
  @Injectable()
  class Orders {
    readonly urgent = 'b';

    @DistributedLock('order', function (this: Orders, id: string) {
      return { kind: 'write', onBusy: () => `busy ${id}`, waitTime: id === this.urgent ? '1m' : 0 };
    })
    async pay(id: string): Promise<string> {
      return Promise.resolve(`${id} ${String(currentLease()?.name)}`);
    }

    @DistributedLock('order', (options: object) => options)
    async any(options: object): Promise<object> {
      return Promise.resolve(options);
    }
  }

  it('are asked for each call, of its arguments and its object', async () => {
    const orders = await make({}, Orders);
    const { read } = app!.get(LockService).getReadWriteLock('order');
    const lease = await read.acquire();
    expect(await orders.pay('a')).toBe('busy a');
    const waiting = orders.pay('b');
    await lease.release();
    expect(await waiting).toBe('b order');
  });

  it.each([
    ['an unknown option', { waitTme: 1 }, /waitTme: is not an option of a call/],
    ['what is fixed at boot', { instance: 'other' }, /instance: is not an option of a call/],
    ['a wrong value', { leaseTime: 'soon' }, /leaseTime/],
    ['nothing', undefined, /options: must be an object/],
    ['an unknown preset', { preset: 'job' }, /preset: "job" is not among/],
  ])('are refused with %s, and the method does not run', async (_, options, message) => {
    const orders = await make({}, Orders);
    await expect(orders.any(options as object)).rejects.toThrow(message);
  });

  it('serve an interceptor, which gives the context', async () => {
    const seen: ExecutionContext[] = [];
    const Interceptor = LockInterceptor('a', (context) => {
      seen.push(context);
      return { waitTime: 0, onBusy: () => 'busy' };
    });
    const interceptor = new Interceptor((await compile({})).get(LockService));
    const context = {
      getClass: () => Orders,
      getHandler: () => Orders.prototype.pay,
      getArgs: () => [],
      getType: () => 'rpc',
    } as unknown as ExecutionContext;
    const next: CallHandler = { handle: () => of('done') };
    const answer = async (): Promise<unknown> => lastValueFrom(await interceptor.intercept(context, next));
    expect(await answer()).toBe('done');
    await holding('a', async () => {
      expect(await answer()).toBe('busy');
    });
    expect(seen).toEqual([context, context]);
  });
});

describe('a signal', () => {
  @Injectable()
  class Orders {
    @DistributedLock('order', { signal: (_: string, signal?: AbortSignal) => signal })
    async pay(id: string, signal?: AbortSignal): Promise<string> {
      return Promise.resolve(`${id} ${String(signal?.aborted)}`);
    }

    @DistributedLock('order', { preset: 'cancellable' })
    async byPreset(signal: AbortSignal): Promise<boolean> {
      return Promise.resolve(signal.aborted);
    }
  }

  it('of the call ends its wait, and no other one', async () => {
    const presets = { cancellable: { signal: (signal: AbortSignal) => signal } };
    const orders = await make({ presets }, Orders);
    const gone = new AbortController();
    await holding('order', async () => {
      const waiting = [orders.pay('a', gone.signal), orders.byPreset(gone.signal)];
      const other = orders.pay('b');
      gone.abort();
      for (const call of waiting) await expect(call).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
      return { other };
    }).then(async ({ other }) => {
      expect(await other).toBe('b undefined');
    });
  });

  it('that is none is refused', async () => {
    const orders = await make({ presets: { cancellable: {} } }, Orders);
    await expect(orders.pay('a', 5 as never)).rejects.toThrow(/signal: must be an AbortSignal/);
  });
});

describe('enabled: false', () => {
  @Injectable()
  class Orders {
    inside = 0;

    @DistributedLock('order:$<args[0].id>')
    async pay(order?: { id: string }): Promise<number> {
      const { assertLocked } = await import('../../lib/index.js');
      assertLocked();
      this.inside++;
      await new Promise((resolve) => setImmediate(resolve));
      expect(currentLease()).toBeUndefined();
      return Promise.resolve(order === undefined ? this.inside-- : this.inside);
    }

    @DistributedLock('order', { returns: 'observable' })
    stream() {
      return of(1);
    }
  }

  it('calls methods and handlers without a lock, and says so at boot', async () => {
    const warnings: unknown[] = [];
    const spy = new Proxy(Logger.prototype.warn, {
      apply: (_, __, [message]) => {
        warnings.push(message);
      },
    });
    const { warn } = Logger.prototype;
    Logger.prototype.warn = spy;
    const connection = 'redis://127.0.0.1:1';
    try {
      await compile({ store: undefined, connection, enabled: false }, Orders);
    } finally {
      Logger.prototype.warn = warn;
    }
    expect(warnings).toEqual([expect.stringMatching(/WITHOUT a lock/)]);
    const orders = app!.get(Orders);
    // Without a key, and at the same time.
    expect(await Promise.all([orders.pay(), orders.pay()])).toEqual([2, 1]);
    expect(await lastValueFrom(orders.stream())).toBe(1);
    const Interceptor = LockInterceptor('a:$<req.params.id>');
    const interceptor = new Interceptor(app!.get(LockService));
    const context = {
      getClass: () => Orders,
      getHandler: () => Orders.prototype.pay,
      getArgs: () => [],
      getType: () => 'rpc',
    } as unknown as ExecutionContext;
    const answer = await interceptor.intercept(context, { handle: () => of('done') });
    expect(await lastValueFrom(answer)).toBe('done');
  });

  it('leaves the methods of the service as they are', async () => {
    const module = await compile({ enabled: false });
    const locks = module.get(LockService);
    await locks.using('a', async () => {
      expect(await locks.runInScope(() => locks.tryAcquire('a'))).toBeNull();
    });
  });

  it('must be a boolean', () => {
    expect(() => LockModule.forRoot({ store: 'memory', enabled: 'no' as never })).toThrow(/enabled/);
  });
});

it.each([
  ['options', () => Promise.resolve({ waitTime: 0 })],
  ['an error', () => Promise.reject(new Error('unhandled'))],
])('a function that gives a Promise of %s is refused, and the method does not run', async (_, give) => {
  let ran = 0;
  class Orders {
    @DistributedLock('order', () => give() as never)
    async pay(): Promise<void> {
      ran++;
      return Promise.resolve();
    }
  }
  const orders = await make({}, Orders);
  await expect(orders.pay()).rejects.toThrow(
    'options: a function must give it at once, and no Promise of it',
  );
  expect(ran).toBe(0);
});
