import 'reflect-metadata';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type DynamicModule, Injectable, Module, type Provider, Scope, SetMetadata } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  defer,
  EMPTY,
  firstValueFrom,
  lastValueFrom,
  NEVER,
  Observable,
  of,
  range,
  tap,
  throwError,
  timer,
  toArray,
} from 'rxjs';
import {
  assertLocked,
  currentLease,
  DistributedLock,
  type DistributedLockOptions,
  type Lease,
  LockModule,
  LockService,
  LockTimeoutError,
} from '../../lib/index.js';
import { Entries } from '../doubles/entries.js';
import { ScriptedStore } from '../doubles/scripted-store.js';

let store: ScriptedStore;
let entries: Entries;
let app: TestingModule | undefined;

beforeEach(() => {
  store = new ScriptedStore();
  entries = new Entries();
});

afterEach(async () => {
  await app?.close();
  app = undefined;
});

const boot = async (...providers: Provider[]) => {
  app = await Test.createTestingModule({ imports: [LockModule.forRoot({ store })], providers }).compile();
  await app.init();
  return app;
};

const make = async <T>(type: new () => T): Promise<T> => (await boot(type as never)).get(type);

/** A service with one method under these options, which takes a moment. */
const servedWith = async (
  options: DistributedLockOptions,
  run: () => unknown = () => entries.visit('done'),
) => {
  @Injectable()
  class Jobs {
    @DistributedLock('job', options)
    async run(): Promise<unknown> {
      return run();
    }
  }
  return make(Jobs);
};

describe('a locked method', () => {
  @Injectable()
  class Orders {
    #paid: string[] = [];

    @DistributedLock('order:$<args[0]>')
    async pay(id: string, amount = 1): Promise<string> {
      this.#paid.push(id);
      return entries.visit(`${id}:${String(amount)}`, id);
    }

    @DistributedLock((order: { id: string }) => `order:${order.id}`)
    async ship(order: { id: string }): Promise<boolean> {
      return entries.visit(true, order.id);
    }

    @DistributedLock(['stock:$<args[0][*].sku>', 'cart:$<args[1]>'])
    async reserve(items: { sku: string }[], cart: string): Promise<string[]> {
      await sleep(1);
      return [...items.map(({ sku }) => `stock:${sku}`), `cart:${cart}`];
    }

    paid() {
      return this.#paid;
    }
  }

  it('runs once at a time per key, with its own this and private fields', async () => {
    const orders = await make(Orders);
    const results = await Promise.all(['a', 'b', 'a', 'a', 'b'].map((id, n) => orders.pay(id, n)));
    expect(results).toEqual(['a:0', 'b:1', 'a:2', 'a:3', 'b:4']);
    expect(entries.most).toBe(1);
    expect(orders.paid()).toHaveLength(5);
  });

  it('shares a key with other methods, whichever way that is made', async () => {
    const orders = await make(Orders);
    await Promise.all([orders.pay('a'), orders.ship({ id: 'a' }), orders.pay('a')]);
    expect(entries.most).toBe(1);
  });

  it('takes all the keys of an array and of [*]', async () => {
    const orders = await make(Orders);
    const locks = app!.get(LockService);
    const busy = await locks.acquire('stock:2');
    const reserving = orders.reserve([{ sku: '1' }, { sku: '2' }], 'c');
    await sleep(10);
    expect(await Promise.race([reserving, sleep(1, 'waiting')])).toBe('waiting');
    await busy.release();
    expect(await reserving).toEqual(['stock:1', 'stock:2', 'cart:c']);
  });

  it('does not run with a key that is missing something', async () => {
    const orders = await make(Orders);
    await expect(orders.pay(undefined as never)).rejects.toMatchObject({ code: 'LOCK_KEY' });
    await expect(orders.pay({} as never)).rejects.toMatchObject({ code: 'LOCK_KEY' });
    await expect(orders.reserve([], 'c')).rejects.toMatchObject({ code: 'LOCK_KEY' });
    expect(entries.total).toBe(0);
    expect(store.calls.acquire).toBe(0);
  });

  it('passes an error of the method through untouched, and releases', async () => {
    const failure = new Error('business');
    const jobs = await servedWith({}, () => Promise.reject(failure));
    await expect(jobs.run()).rejects.toBe(failure);
    expect(await app!.get(LockService).inspect('job')).toBeNull();
  });

  it('keeps name, length and metadata, whichever decorator is above', () => {
    class Tagged {
      @SetMetadata('above', 1)
      @DistributedLock('a')
      @SetMetadata('below', 2)
      async method(one: string, two: string): Promise<string> {
        return Promise.resolve(one + two);
      }
    }
    const { method } = Tagged.prototype;
    expect([method.name, method.length]).toEqual(['method', 2]);
    expect([Reflect.getMetadata('above', method), Reflect.getMetadata('below', method)]).toEqual([1, 2]);
  });

  it('may have a Symbol for a name', async () => {
    const run = Symbol('run');
    @Injectable()
    class Jobs {
      @DistributedLock('job:$<class>:$<method>')
      async [run](): Promise<string | undefined> {
        return Promise.resolve(currentLease()?.name);
      }
    }
    expect(await (await make(Jobs))[run]()).toBe('job:Jobs:Symbol(run)');
  });

  it('reads templates from this', async () => {
    @Injectable()
    class Tenants {
      readonly tenant = 'acme';
      @DistributedLock('$<this.tenant>')
      async run(): Promise<string | undefined> {
        return Promise.resolve(currentLease()?.name);
      }
    }
    expect(await (await make(Tenants)).run()).toBe('acme');
  });
});

describe('wherever Nest makes the object', () => {
  @Injectable()
  class Plain {
    @DistributedLock('a')
    async run(): Promise<void> {
      await entries.visit(undefined);
    }
  }
  @Injectable({ scope: Scope.TRANSIENT })
  class Transient extends Plain {}
  @Injectable({ scope: Scope.REQUEST })
  class PerRequest extends Plain {}

  it.each([
    ['singleton', Plain],
    ['transient', Transient],
    ['request-scoped', PerRequest],
  ])('%s', async (_, type) => {
    const module = await boot(type);
    const instances = await Promise.all(
      [1, 2, 3].map(() => module.resolve(type).catch(() => module.get(type))),
    );
    await Promise.all(instances.map((instance) => instance.run()));
    expect(entries.total).toBe(3);
    expect(entries.most).toBe(1);
  });

  it('of a dynamic module', async () => {
    @Module({})
    class Feature {
      static register(): DynamicModule {
        return { module: Feature, providers: [{ provide: 'job', useClass: Plain }], exports: ['job'] };
      }
    }
    app = await Test.createTestingModule({
      imports: [LockModule.forRoot({ store }), Feature.register()],
    }).compile();
    const job = app.get<Plain>('job', { strict: false });
    await Promise.all([job.run(), job.run()]);
    expect(entries.most).toBe(1);
  });

  it('in two applications of one process, each with its own service', async () => {
    const build = (own: ScriptedStore) =>
      Test.createTestingModule({
        imports: [LockModule.forRoot({ store: own })],
        providers: [Plain],
      }).compile();
    const [first, second] = [new ScriptedStore(), new ScriptedStore()];
    const [one, two] = await Promise.all([build(first), build(second)]);
    await one.get(Plain).run();
    expect([first.calls.acquire, second.calls.acquire]).toEqual([1, 0]);
    await two.get(Plain).run();
    expect([first.calls.acquire, second.calls.acquire]).toEqual([1, 1]);
    await one.close();
    await two.get(Plain).run();
    await two.close();
  });

  it('uses a service that a test has put in its place', async () => {
    const used: unknown[] = [];
    const double = {
      using: (name: unknown, _: unknown, run: (lease: unknown) => unknown) => (used.push(name), run({})),
    };
    app = await Test.createTestingModule({ imports: [LockModule.forRoot({ store })], providers: [Plain] })
      .overrideProvider(LockService)
      .useValue(double)
      .compile();
    await app.get(Plain).run();
    expect(used).toEqual(['a']);
  });

  it('fails the boot without LockModule, and names class, decorator and cure', async () => {
    const booting = Test.createTestingModule({ providers: [Plain] }).compile();
    await expect(booting).rejects.toThrow(/Plain.*@DistributedLock.*import LockModule\.forRoot/s);
  });

  it('refuses to run on an object that Nest has not made', async () => {
    const error = await new Plain().run().catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: 'LOCK_CONFIG' });
    expect((error as Error).message).toMatch(/Plain\.run.*@DistributedLock/);
    expect(entries.total).toBe(0);
  });

  it('refuses to run without an object, and says so', async () => {
    const { run } = await make(Plain);
    const error = await (run as () => Promise<unknown>)().catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: 'LOCK_CONFIG' });
    expect((error as Error).message).toMatch(/Plain\.run.*without its object/);
    expect(entries.total).toBe(0);
  });
});

describe('in class hierarchies', () => {
  abstract class Base<T> {
    @DistributedLock('shared')
    async run(value: T): Promise<T> {
      return this.work(value);
    }
    protected abstract work(value: T): Promise<T>;
  }

  @Injectable()
  class Child extends Base<number> {
    protected work(value: number) {
      return entries.visit(value);
    }
  }

  @Injectable()
  class Overriding extends Base<number> {
    @DistributedLock('own')
    override async run(value: number): Promise<number> {
      return (await super.run(value)) + 1;
    }
    protected work(value: number) {
      assertLocked('own');
      assertLocked('shared');
      return entries.visit(value);
    }
  }

  @Injectable()
  class Unlocking extends Base<number> {
    override async run(value: number): Promise<number> {
      return entries.visit(value);
    }
    protected work(value: number) {
      return Promise.resolve(value);
    }
  }

  it('a method is inherited with its lock, from an abstract generic class', async () => {
    const child = await make(Child);
    expect(await Promise.all([child.run(1), child.run(2)])).toEqual([1, 2]);
    expect(entries.most).toBe(1);
  });

  it('an override has its own lock, and super keeps its', async () => {
    const overriding = await make(Overriding);
    expect(await Promise.all([overriding.run(1), overriding.run(2)])).toEqual([2, 3]);
    expect(entries.most).toBe(1);
  });

  it('an override without the decorator is not locked', async () => {
    const unlocking = await make(Unlocking);
    await Promise.all([unlocking.run(1), unlocking.run(2)]);
    expect(entries.most).toBe(2);
  });
});

describe('several locks on one method', () => {
  it('are taken from the outermost in', async () => {
    const order: string[] = [];
    @Injectable()
    class Jobs {
      @DistributedLock('outer')
      @DistributedLock('inner')
      async run(): Promise<string[]> {
        assertLocked('outer');
        assertLocked('inner');
        return Promise.resolve(
          app!
            .get(LockService)
            .leases()
            .map((lease) => lease.name),
        );
      }
    }
    const jobs = await make(Jobs);
    app!.get(LockService).events$.subscribe((event) => event.type === 'acquired' && order.push(event.name));
    expect(await jobs.run()).toEqual(['outer', 'inner']);
    expect(order).toEqual(['outer', 'inner']);
  });
});

describe('reentrancy', () => {
  @Injectable()
  class Inner {
    @DistributedLock('order:$<args[0]>')
    async run(id: string): Promise<number | undefined> {
      assertLocked(`order:${id}`);
      return Promise.resolve(currentLease()?.fencingToken);
    }
  }
  @Injectable()
  class Outer {
    constructor(private readonly inner: Inner) {}
    @DistributedLock('order:$<args[0]>')
    async run(id: string): Promise<(number | undefined)[]> {
      const all = await Promise.all([this.inner.run(id), this.inner.run(id)]);
      return [currentLease()?.fencingToken, ...all];
    }
    @DistributedLock('deep')
    async recurse(n: number): Promise<number> {
      return n === 0 ? 0 : 1 + (await this.recurse(n - 1));
    }
  }

  it('A calls B with the same key, across services, without a command', async () => {
    const outer = (await boot(Inner, Outer)).get(Outer);
    const tokens = await outer.run('7');
    expect(new Set(tokens).size).toBe(1);
    expect(store.calls).toMatchObject({ acquire: 1, release: 1 });
  });

  it('recurses', async () => {
    const outer = (await boot(Inner, Outer)).get(Outer);
    expect(await outer.recurse(20)).toBe(20);
    expect(store.calls).toMatchObject({ acquire: 1, release: 1 });
  });
});

describe('onBusy', () => {
  const whileBusy = async (options: DistributedLockOptions) => {
    const jobs = await servedWith({ waitTime: 0, ...options });
    const lease = await app!.get(LockService).acquire('job');
    return { call: jobs.run(), release: () => lease.release() };
  };

  it('throws LockTimeoutError', async () => {
    const { call } = await whileBusy({});
    await expect(call).rejects.toBeInstanceOf(LockTimeoutError);
    expect(entries.total).toBe(0);
  });

  it('skips', async () => {
    const { call } = await whileBusy({ onBusy: 'skip' });
    expect(await call).toBeUndefined();
    expect(entries.total).toBe(0);
  });

  it('asks a function, with the keys and the error', async () => {
    const { call } = await whileBusy({ onBusy: ({ keys, error }) => `${keys.join()} ${error.code}` });
    expect(await call).toBe('job LOCK_TIMEOUT');
  });

  it('concerns its own lock only, not one that the method waits for', async () => {
    const jobs = await servedWith({ onBusy: 'skip' }, () =>
      app!.get(LockService).using('other', { waitTime: 0 }, () => 1),
    );
    await app!.get(LockService).acquire('other');
    await expect(jobs.run()).rejects.toBeInstanceOf(LockTimeoutError);
  });

  it('does not hide a store that is away', async () => {
    const jobs = await servedWith({ onBusy: 'skip', waitTime: 0 });
    await app!.get(LockService).onApplicationShutdown();
    await expect(jobs.run()).rejects.toMatchObject({ code: 'LOCK_CLOSED' });
  });
});

describe('onLost', () => {
  const losing = () =>
    app!
      .get(LockService)
      .forceRelease('job')
      .then(() => 'result');

  it('leaves the result as it is', async () => {
    const jobs = await servedWith({}, losing);
    expect(await jobs.run()).toBe('result');
  });

  it("'throw' turns success into LockLostError, with the result", async () => {
    const jobs = await servedWith({ onLost: 'throw' }, losing);
    await expect(jobs.run()).rejects.toMatchObject({
      code: 'LOCK_LOST',
      reason: 'deleted',
      result: 'result',
    });
  });

  it("'throw' learns of a loss from the release too", async () => {
    const jobs = await servedWith({ onLost: 'throw' }, () => store.forceRelease('job'));
    await expect(jobs.run()).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'deleted' });
  });

  it("'throw' does not replace the method's own error", async () => {
    const failure = new Error('business');
    const jobs = await servedWith({ onLost: 'throw' }, () => losing().then(() => Promise.reject(failure)));
    await expect(jobs.run()).rejects.toBe(failure);
  });
});

describe('minHoldTime', () => {
  it('keeps the lock from everybody for so long, and no longer', async () => {
    const jobs = await servedWith({ minHoldTime: 150, waitTime: 0, onBusy: 'skip' });
    const began = performance.now();
    expect(await jobs.run()).toBe('done');
    expect(app!.get(LockService).leases()).toEqual([]);
    expect(await jobs.run()).toBeUndefined();
    const lease = await app!.get(LockService).acquire('job', { waitTime: 10_000 });
    expect(performance.now() - began).toBeGreaterThanOrEqual(149);
    await lease.release();
  });

  it('adds nothing to a method that takes longer', async () => {
    const jobs = await servedWith({ minHoldTime: 10 }, () => sleep(30));
    await jobs.run();
    expect(await app!.get(LockService).inspect('job')).toBeNull();
  });

  it('counts for a method that fails, too', async () => {
    const jobs = await servedWith({ minHoldTime: 1_000 }, () => Promise.reject(new Error('x')));
    await jobs.run().catch(() => undefined);
    expect((await app!.get(LockService).inspect('job'))?.remainingTime).toBeLessThanOrEqual(1_000);
  });

  it('goes with a fixed lease as long, and with a renewed one of any length', async () => {
    for (const options of [
      { leaseTime: 500, minHoldTime: 500 },
      { leaseTime: 500, renew: true, minHoldTime: 5_000 },
    ]) {
      const jobs = await servedWith(options);
      await expect(jobs.run()).resolves.toBe('done');
      await app?.close();
      app = undefined;
    }
  });

  it('does not lengthen the lease meanwhile, so a crash frees the lock no later', async () => {
    const jobs = await servedWith({ minHoldTime: 600_000 }, () =>
      app!.get(LockService).getLock('job').remainingTime(),
    );
    expect(await jobs.run()).toBeLessThanOrEqual(30_000);
  });
});

describe('other options', () => {
  it('instance names the service', async () => {
    const other = new ScriptedStore();
    @Injectable()
    class Jobs {
      @DistributedLock('job', { instance: 'reports' })
      async run(): Promise<void> {
        await sleep(1);
      }
    }
    app = await Test.createTestingModule({
      imports: [LockModule.forRoot({ store }), LockModule.forRoot({ store: other, name: 'reports' })],
      providers: [Jobs],
    }).compile();
    await app.get(Jobs).run();
    expect([store.calls.acquire, other.calls.acquire]).toEqual([0, 1]);
  });

  it('an unknown instance fails the boot with its cure', async () => {
    @Injectable()
    class Jobs {
      @DistributedLock('job', { instance: 'nowhere' })
      async run(): Promise<void> {
        await sleep(1);
      }
    }
    await expect(boot(Jobs)).rejects.toThrow(/Jobs.*name: "nowhere"/s);
  });

  it('signal stops the waiting, leaseTime fixes the lease', async () => {
    const controller = new AbortController();
    const jobs = await servedWith({ signal: controller.signal, leaseTime: 1_000 }, () =>
      Promise.resolve(currentLease()?.remainingTime()),
    );
    expect(await jobs.run()).toBeLessThan(1_000);
    await app!.get(LockService).acquire('job');
    const waiting = jobs.run();
    await sleep(5);
    controller.abort();
    await expect(waiting).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
  });
});

describe('kind', () => {
  @Injectable()
  class Files {
    @DistributedLock('file:$<args[0]>', { kind: 'read' })
    async read(name: string): Promise<string> {
      return entries.visit(name, 'read', 20);
    }
    @DistributedLock('file:$<args[0]>', { kind: 'write' })
    async write(name: string): Promise<string> {
      entries.enter('write');
      // A writer may read what it writes.
      const content = await this.read(name);
      entries.leave('write');
      return content;
    }
    @DistributedLock('queue', { kind: 'fair' })
    async fair(order: number[], n: number): Promise<void> {
      order.push(n);
      await sleep(1);
    }
    @DistributedLock(['a', 'b'], { kind: 'fair' })
    async both(): Promise<string[]> {
      return Promise.resolve(
        app!
          .get(LockService)
          .leases()
          .map((lease) => lease.name),
      );
    }
  }

  it("'read' shares, 'write' does not", async () => {
    const files = await make(Files);
    await Promise.all([files.read('x'), files.read('x'), files.read('x')]);
    expect(entries.most).toBe(3);
    entries = new Entries();
    await Promise.all([files.write('x'), files.write('x'), files.write('y')]);
    expect(entries.most).toBeLessThanOrEqual(2);
    expect(await app!.get(LockService).inspect('file:x')).toBeNull();
  });

  it("'fair' serves in the order of arrival, and takes several keys", async () => {
    const files = await make(Files);
    const order: number[] = [];
    await Promise.all(Array.from({ length: 10 }, (_, n) => files.fair(order, n)));
    expect(order).toEqual(Array.from({ length: 10 }, (_, n) => n));
    expect(await files.both()).toEqual(['a', 'b']);
  });
});

describe('refused where it is applied', () => {
  const apply = (key: unknown, options?: unknown) => () => {
    class Jobs {
      @DistributedLock(key as string, options as never)
      async run(): Promise<void> {
        await sleep(1);
      }
    }
    return Jobs;
  };

  it.each<[string, unknown, unknown, RegExp]>([
    ['a malformed template', 'a:$<args', undefined, /Jobs\.run.*"a:\$<args".*position/],
    ['no key', undefined, undefined, /Jobs\.run.*template/],
    ['an empty array', [], undefined, /empty/],
    ['an unknown kind', 'a', { kind: 'mutex' }, /kind.*"mutex"/],
    ['a wrong onBusy', 'a', { onBusy: 'wait' }, /onBusy.*"wait"/],
    ['a wrong onLost', 'a', { onLost: 'ignore' }, /onLost/],
    ['a wrong returns', 'a', { returns: 'stream' }, /returns/],
    ['a negative minHoldTime', 'a', { minHoldTime: -1 }, /minHoldTime.*-1/],
    [
      'a minHoldTime longer than the fixed lease',
      'a',
      { leaseTime: 500, minHoldTime: 501 },
      /minHoldTime: must not be longer than the fixed lease of 500 ms.*501/,
    ],
    ['a NaN waitTime', 'a', { waitTime: NaN }, /waitTime.*NaN/],
    ['a leaseTime of 0', 'a', { leaseTime: 0 }, /leaseTime.*0/],
    ['an empty instance', 'a', { instance: '' }, /Jobs\.run: instance: must/],
    ['an option that does not exist', 'a', { waitTme: 5 }, /waitTme/],
    ['null for the options', 'a', null, /Jobs\.run.*options.*null/],
    ['a number for the options', 'a', 5_000, /Jobs\.run.*options.*5000/],
    ['an array for the options', 'a', [], /Jobs\.run.*options.*must be an object \(found: an array/],
  ])('%s', (_, key, options, message) => {
    expect(apply(key, options)).toThrow(expect.objectContaining({ code: 'LOCK_CONFIG' }));
    expect(apply(key, options)).toThrow(message);
  });

  it('a static method', () => {
    expect(() => {
      class Jobs {
        readonly field = 1;
        @DistributedLock('a')
        static async run(): Promise<void> {
          await sleep(1);
        }
      }
      return Jobs;
    }).toThrow(/Jobs\.run.*static/);
  });

  it.each([
    [
      'an async generator',
      async function* () {
        yield sleep(1);
      },
    ],
    [
      'a generator',
      function* () {
        yield 1;
      },
    ],
  ])('%s, which runs after its call has ended', (_, value) => {
    const decorate = DistributedLock('a') as (target: object, property: string, descriptor?: object) => void;
    expect(() => {
      decorate({}, 'rows', { value });
    }).toThrow(/rows.*generator/);
  });

  it('a class', () => {
    expect(() => {
      @(DistributedLock('a') as unknown as ClassDecorator)
      class Jobs {
        readonly field = 1;
      }
      return Jobs;
    }).toThrow('@DistributedLock on Jobs: goes on a method');
  });

  it('something that is no method', () => {
    const decorate = DistributedLock('a') as (target: object, property: string, descriptor?: object) => void;
    expect(() => {
      decorate({}, 'field');
    }).toThrow(/method/);
    expect(() => {
      decorate({}, 'getter', { get: () => 1 });
    }).toThrow(/method/);
  });
});

describe('currentLease and assertLocked', () => {
  it('know the innermost lease, and every lock that is held', async () => {
    const jobs = await servedWith({}, async () => {
      const locks = app!.get(LockService);
      expect(currentLease()?.name).toBe('job');
      await locks.using('nested', () => {
        expect(currentLease()?.name).toBe('nested');
        assertLocked('job');
        assertLocked('nested');
      });
      expect(currentLease()?.name).toBe('job');
      assertLocked();
      expect(() => {
        assertLocked('nested');
      }).toThrow(/"nested"/);
    });
    await jobs.run();
    expect(currentLease()).toBeUndefined();
    expect(() => {
      assertLocked();
    }).toThrow(expect.objectContaining({ code: 'LOCK_CONFIG' }));
  });

  it('throw LockLostError when the lease is gone', async () => {
    const jobs = await servedWith({}, async () => {
      await app!.get(LockService).forceRelease('job');
      expect(() => {
        assertLocked('job');
      }).toThrow(expect.objectContaining({ code: 'LOCK_LOST' }));
      expect(() => {
        assertLocked();
      }).toThrow(expect.objectContaining({ code: 'LOCK_LOST' }));
      await app!.get(LockService).using('nested', () => {
        expect(() => {
          assertLocked('job');
        }).toThrow(expect.objectContaining({ code: 'LOCK_LOST' }));
      });
    });
    await jobs.run();
  });

  it('know a multi-lock by its own name, too', async () => {
    const locks = (await boot()).get(LockService);
    await locks.using(['a', 'b'], async ({ name }) => {
      assertLocked('a');
      assertLocked(name);
      await locks.using('nested', () => {
        assertLocked(name);
      });
      await locks.forceRelease('b');
      expect(() => {
        assertLocked(name);
      }).toThrow(expect.objectContaining({ code: 'LOCK_LOST' }));
    });
  });
});

describe('a method that returns an Observable', () => {
  let leases: (Lease | undefined)[];
  let source: () => Observable<unknown>;

  @Injectable()
  class Streams {
    @DistributedLock('stream')
    declared(): Observable<unknown> {
      leases.push(currentLease());
      return source();
    }
    @DistributedLock('stream', { returns: 'observable', waitTime: 0, onBusy: 'skip' })
    skipping() {
      return source();
    }
    @DistributedLock('stream', { returns: 'observable', waitTime: 0, onBusy: () => of('busy', 'busy') })
    answering() {
      return source();
    }
    @DistributedLock('stream', { returns: 'observable', onLost: 'throw' })
    throwing() {
      return source();
    }

    @DistributedLock('stream')
    undeclared(): never {
      return source() as never;
    }
    @DistributedLock('stream', { returns: 'observable' })
    // eslint-disable-next-line @typescript-eslint/no-explicit-any -- any other type is refused at compile time
    async wrong(): Promise<any> {
      return Promise.resolve(1);
    }

    @DistributedLock('stream', { returns: 'observable' })
    async promised(): Promise<Observable<unknown>> {
      leases.push(currentLease());
      await sleep(1);
      return source();
    }
    @DistributedLock('stream')
    async unannounced(): Promise<unknown> {
      return Promise.resolve(source());
    }
  }

  const isLocked = () => app!.get(LockService).getLock('stream').isLocked();
  let streams: Streams;

  beforeEach(async () => {
    leases = [];
    source = () => of(1, 2, 3);
    streams = await make(Streams);
  });

  it('does nothing before somebody subscribes', async () => {
    const stream = streams.declared();
    await sleep(5);
    expect(leases).toEqual([]);
    expect(await isLocked()).toBe(false);
    expect(await lastValueFrom(stream.pipe(toArray()))).toEqual([1, 2, 3]);
    expect(await isLocked()).toBe(false);
  });

  it('is locked until it completes', async () => {
    source = () =>
      defer(() => {
        entries.enter();
        return timer(30).pipe(
          tap(() => {
            entries.leave();
          }),
        );
      });
    const both = Promise.all([lastValueFrom(streams.declared()), lastValueFrom(streams.declared())]);
    await sleep(10);
    expect(await isLocked()).toBe(true);
    await both;
    expect(entries.most).toBe(1);
    expect(await isLocked()).toBe(false);
  });

  it('makes each subscription a call with a lock of its own', async () => {
    source = () =>
      new Observable((subscriber) => {
        entries.enter();
        const end = setTimeout(() => {
          entries.leave();
          subscriber.complete();
        }, 10);
        return () => {
          clearTimeout(end);
        };
      });
    const stream = streams.declared();
    await Promise.all([1, 2, 3].map(() => lastValueFrom(stream, { defaultValue: undefined })));
    expect(entries.total).toBe(3);
    expect(entries.most).toBe(1);
    expect(new Set(leases.map((lease) => lease?.fencingToken)).size).toBe(3);
  });

  it('is released when it fails, and the error is its own', async () => {
    const failure = new Error('business');
    source = () => throwError(() => failure);
    await expect(lastValueFrom(streams.declared())).rejects.toBe(failure);
    expect(await isLocked()).toBe(false);
  });

  it('is released when it is unsubscribed from', async () => {
    let stopped = false;
    source = () => new Observable(() => () => (stopped = true));
    const subscription = streams.declared().subscribe();
    await sleep(10);
    expect(await isLocked()).toBe(true);
    subscription.unsubscribe();
    await sleep(5);
    expect(stopped).toBe(true);
    expect(await isLocked()).toBe(false);
  });

  it('is released when its consumer takes the first value only', async () => {
    source = () => timer(0, 5);
    expect(await firstValueFrom(streams.declared())).toBe(0);
    await sleep(5);
    expect(await isLocked()).toBe(false);
  });

  it('stops a source that emits all at once, as soon as nobody listens', async () => {
    let emitted = 0;
    source = () => range(1, 1_000).pipe(tap(() => emitted++));
    expect(await firstValueFrom(streams.declared())).toBe(1);
    expect(emitted).toBe(1);
    await sleep(5);
    expect(await isLocked()).toBe(false);
  });

  it('leaves the line when it is unsubscribed from while it waits', async () => {
    const locks = app!.get(LockService);
    const lease = await locks.acquire('stream');
    const subscription = streams.declared().subscribe();
    await sleep(5);
    expect((await locks.inspect('stream'))?.waiters.local).toBe(1);
    subscription.unsubscribe();
    expect((await locks.inspect('stream'))?.waiters.local).toBe(0);
    await lease.release();
    await sleep(5);
    expect(leases).toEqual([]);
  });

  it('completes without a value, or gives what onBusy gives, when it is busy', async () => {
    const lease = await app!.get(LockService).acquire('stream');
    expect(await lastValueFrom(streams.skipping().pipe(toArray()))).toEqual([]);
    expect(await lastValueFrom(streams.answering().pipe(toArray()))).toEqual(['busy', 'busy']);
    await lease.release();
    expect(await lastValueFrom(streams.answering().pipe(toArray()))).toEqual([1, 2, 3]);
  });

  it("ends with LockLostError at the loss, with onLost 'throw'", async () => {
    source = () => NEVER;
    const ended = lastValueFrom(streams.throwing());
    await sleep(5);
    await app!.get(LockService).forceRelease('stream');
    await expect(ended).rejects.toMatchObject({ code: 'LOCK_LOST', result: undefined });
  });

  it('runs inside the scope of its lock', async () => {
    source = () => {
      assertLocked('stream');
      return timer(1).pipe(
        tap(() => {
          assertLocked('stream');
        }),
      );
    };
    await lastValueFrom(streams.declared());
  });

  it('is never passed on unlocked when nothing has announced it', async () => {
    let subscribed = false;
    source = () => new Observable(() => void (subscribed = true));
    const error = await (streams.undeclared() as Promise<unknown>).catch((reason: unknown) => reason);
    expect((error as Error).message).toMatch(/Streams\.undeclared.*return type.*returns: 'observable'/s);
    expect(subscribed).toBe(false);
    expect(await isLocked()).toBe(false);
  });

  it('has to be one where it was announced', async () => {
    const stream = (await streams.wrong()) as Observable<unknown>;
    await expect(lastValueFrom(stream)).rejects.toThrow(/Streams\.wrong.*returns: 'promise'/s);
  });

  it('may be promised: locked from subscription, while the caller gets its Promise', async () => {
    const promise = streams.promised();
    const stream = await promise.then((observable) => observable);
    expect([leases.length, await isLocked()]).toEqual([0, false]);
    source = () => timer(5);
    const ended = lastValueFrom(stream);
    await sleep(3);
    expect(await isLocked()).toBe(true);
    expect(await ended).toBe(0);
    expect(await isLocked()).toBe(false);
    await lastValueFrom(stream);
    expect(new Set(leases.map((lease) => lease?.fencingToken)).size).toBe(2);
  });

  it('is told the option that helps where a Promise of one was not announced', async () => {
    const refused = streams.unannounced();
    await expect(refused).rejects.toThrow(/Streams\.unannounced.*returns: 'observable'/s);
    await expect(refused).rejects.not.toThrow(/'promise'/);
  });

  it('may be promised where no types are emitted', async () => {
    const prototype = {
      async stream(): Promise<Observable<number>> {
        return Promise.resolve(of(1));
      },
    };
    const descriptor = Object.getOwnPropertyDescriptor(prototype, 'stream')!;
    DistributedLock('stream', { returns: 'observable' })(
      prototype,
      'stream',
      descriptor as TypedPropertyDescriptor<typeof prototype.stream>,
    );
    const stream = (descriptor.value as typeof prototype.stream).call({ constructor: Object });
    expect(stream).toBeInstanceOf(Promise);
    await expect(lastValueFrom(await stream)).rejects.toThrow(/has injected no LockService/);
  });

  it('may be empty', async () => {
    source = () => EMPTY;
    expect(await lastValueFrom(streams.declared().pipe(toArray()))).toEqual([]);
  });
});
