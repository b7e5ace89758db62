import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { Injectable, SetMetadata } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  assertLocked,
  currentLease,
  DistributedLock,
  type DistributedLockOptions,
  LockModule,
  LockTimeoutError,
} from '../../lib/index.js';
import { Entries } from '../doubles/entries.js';
import { ScriptedStore } from '../doubles/scripted-store.js';
import { DecoratedApp } from './decorated-app.js';

const nest = DecoratedApp.ofEach();

describe('a locked method', () => {
  @Injectable()
  class Orders {
    #paid: string[] = [];

    @DistributedLock('order:$<args[0]>')
    async pay(id: string, amount = 1): Promise<string> {
      this.#paid.push(id);
      return nest.entries.visit(`${id}:${String(amount)}`, id);
    }

    @DistributedLock((order: { id: string }) => `order:${order.id}`)
    async ship(order: { id: string }): Promise<boolean> {
      return nest.entries.visit(true, order.id);
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
    const orders = await nest.make(Orders);
    const results = await Promise.all(['a', 'b', 'a', 'a', 'b'].map((id, n) => orders.pay(id, n)));
    expect(results).toEqual(['a:0', 'b:1', 'a:2', 'a:3', 'b:4']);
    expect(nest.entries.most).toBe(1);
    expect(orders.paid()).toHaveLength(5);
  });

  it('shares a key with other methods, whichever way that is made', async () => {
    const orders = await nest.make(Orders);
    await Promise.all([orders.pay('a'), orders.ship({ id: 'a' }), orders.pay('a')]);
    expect(nest.entries.most).toBe(1);
  });

  it('takes all the keys of an array and of [*]', async () => {
    const orders = await nest.make(Orders);
    const locks = nest.locks;
    const busy = await locks.acquire('stock:2');
    const reserving = orders.reserve([{ sku: '1' }, { sku: '2' }], 'c');
    await sleep(10);
    expect(await Promise.race([reserving, sleep(1, 'waiting')])).toBe('waiting');
    await busy.release();
    expect(await reserving).toEqual(['stock:1', 'stock:2', 'cart:c']);
  });

  it('does not run with a key that is missing something', async () => {
    const orders = await nest.make(Orders);
    await expect(orders.pay(undefined as never)).rejects.toMatchObject({ code: 'LOCK_KEY' });
    await expect(orders.pay({} as never)).rejects.toMatchObject({ code: 'LOCK_KEY' });
    await expect(orders.reserve([], 'c')).rejects.toMatchObject({ code: 'LOCK_KEY' });
    expect(nest.entries.total).toBe(0);
    expect(nest.store.calls.acquire).toBe(0);
  });

  it('passes an error of the method through untouched, and releases', async () => {
    const failure = new Error('business');
    const jobs = await nest.servedWith({}, () => Promise.reject(failure));
    await expect(jobs.run()).rejects.toBe(failure);
    expect(await nest.locks.inspect('job')).toBeNull();
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

  it('reads templates from this', async () => {
    @Injectable()
    class Tenants {
      readonly tenant = 'acme';
      @DistributedLock('$<this.tenant>')
      async run(): Promise<string | undefined> {
        return Promise.resolve(currentLease()?.name);
      }
    }
    expect(await (await nest.make(Tenants)).run()).toBe('acme');
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
        return Promise.resolve(nest.locks.leases().map((lease) => lease.name));
      }
    }
    const jobs = await nest.make(Jobs);
    nest.locks.events$.subscribe((event) => event.type === 'acquired' && order.push(event.name));
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
  }

  it('A calls B with the same key, across services, without a command', async () => {
    const outer = (await nest.boot(Inner, Outer)).get(Outer);
    const tokens = await outer.run('7');
    expect(new Set(tokens).size).toBe(1);
    expect(nest.store.calls).toMatchObject({ acquire: 1, release: 1 });
  });
});

describe('minHoldTime', () => {
  it('keeps the lock for minHoldTime from its start, and no longer', async () => {
    const jobs = await nest.servedWith({ minHoldTime: 2_000, waitTime: 0, onBusy: 'skip' });
    const began = performance.now();
    expect(await jobs.run()).toBe('done');
    expect(nest.locks.leases()).toEqual([]);
    expect(await jobs.run()).toBeUndefined();
    const lease = await nest.locks.acquire('job', { waitTime: 10_000 });
    expect(performance.now() - began).toBeGreaterThanOrEqual(1_999);
    await lease.release();
  });

  it('counts for a method that fails, too', async () => {
    const jobs = await nest.servedWith({ minHoldTime: 1_000 }, () => Promise.reject(new Error('x')));
    await jobs.run().catch(() => undefined);
    expect((await nest.locks.inspect('job'))?.remainingTime).toBeLessThanOrEqual(1_000);
  });

  it('does not lengthen the lease meanwhile, so a crash frees the lock no later', async () => {
    const jobs = await nest.servedWith({ minHoldTime: 600_000 }, () =>
      nest.locks.getLock('job').remainingTime(),
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
    nest.module = await Test.createTestingModule({
      imports: [
        LockModule.forRoot({ store: nest.store }),
        LockModule.forRoot({ store: other, name: 'reports' }),
      ],
      providers: [Jobs],
    }).compile();
    await nest.module.get(Jobs).run();
    expect([nest.store.calls.acquire, other.calls.acquire]).toEqual([0, 1]);
  });

  it('an unknown instance fails the boot with its cure', async () => {
    @Injectable()
    class Jobs {
      @DistributedLock('job', { instance: 'nowhere' })
      async run(): Promise<void> {
        await sleep(1);
      }
    }
    await expect(nest.boot(Jobs)).rejects.toThrow(/Jobs.*name: "nowhere"/s);
  });

  it('signal stops the waiting, leaseTime fixes the lease', async () => {
    const controller = new AbortController();
    const jobs = await nest.servedWith({ signal: controller.signal, leaseTime: 1_000 }, () =>
      Promise.resolve(currentLease()?.remainingTime()),
    );
    expect(await jobs.run()).toBeLessThan(1_000);
    await nest.locks.acquire('job');
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
      return nest.entries.visit(name, 'read', 20);
    }
    @DistributedLock('file:$<args[0]>', { kind: 'write' })
    async write(name: string): Promise<string> {
      nest.entries.enter('write');
      // A writer may read what it writes.
      const content = await this.read(name);
      nest.entries.leave('write');
      return content;
    }
    @DistributedLock('queue', { kind: 'fair' })
    async fair(order: number[], n: number): Promise<void> {
      order.push(n);
      await sleep(1);
    }
    @DistributedLock(['a', 'b'], { kind: 'fair' })
    async both(): Promise<string[]> {
      return Promise.resolve(nest.locks.leases().map((lease) => lease.name));
    }
  }

  it("'read' shares, 'write' does not", async () => {
    const files = await nest.make(Files);
    await Promise.all([files.read('x'), files.read('x'), files.read('x')]);
    expect(nest.entries.most).toBe(3);
    nest.entries = new Entries();
    await Promise.all([files.write('x'), files.write('x'), files.write('y')]);
    expect(nest.entries.most).toBeLessThanOrEqual(2);
    expect(await nest.locks.inspect('file:x')).toBeNull();
  });

  it("'fair' serves in the order of arrival, and takes several keys", async () => {
    const files = await nest.make(Files);
    const order: number[] = [];
    await Promise.all(Array.from({ length: 10 }, (_, n) => files.fair(order, n)));
    expect(order).toEqual(Array.from({ length: 10 }, (_, n) => n));
    expect(await files.both()).toEqual(['a', 'b']);
  });
});

describe('onBusy', () => {
  const whileBusy = async (options: DistributedLockOptions) => {
    const jobs = await nest.servedWith({ waitTime: 0, ...options });
    const lease = await nest.locks.acquire('job');
    return { call: jobs.run(), release: () => lease.release() };
  };

  it('throws LockTimeoutError', async () => {
    const { call } = await whileBusy({});
    await expect(call).rejects.toBeInstanceOf(LockTimeoutError);
    expect(nest.entries.total).toBe(0);
  });

  it('skips', async () => {
    const { call } = await whileBusy({ onBusy: 'skip' });
    expect(await call).toBeUndefined();
    expect(nest.entries.total).toBe(0);
  });

  it('asks a function, with the keys and the error', async () => {
    const { call } = await whileBusy({ onBusy: ({ keys, error }) => `${keys.join()} ${error.code}` });
    expect(await call).toBe('job LOCK_TIMEOUT');
  });

  it('concerns its own lock only, not one that the method waits for', async () => {
    const jobs = await nest.servedWith({ onBusy: 'skip' }, () =>
      nest.locks.using('other', { waitTime: 0 }, () => 1),
    );
    await nest.locks.acquire('other');
    await expect(jobs.run()).rejects.toBeInstanceOf(LockTimeoutError);
  });

  it('does not hide a store that is away', async () => {
    const jobs = await nest.servedWith({ onBusy: 'skip', waitTime: 0 });
    await nest.locks.close();
    await expect(jobs.run()).rejects.toMatchObject({ code: 'LOCK_CLOSED' });
  });
});

describe('onLost', () => {
  const losing = () => nest.locks.forceRelease('job', { reason: 'stuck' }).then(() => 'result');

  it('leaves the result as it is', async () => {
    const jobs = await nest.servedWith({}, losing);
    expect(await jobs.run()).toBe('result');
  });

  it("'throw' turns success into LockLostError, with the result", async () => {
    const jobs = await nest.servedWith({ onLost: 'throw' }, losing);
    await expect(jobs.run()).rejects.toMatchObject({
      code: 'LOCK_LOST',
      reason: 'deleted',
      result: 'result',
      forced: { reason: 'stuck' },
      message: expect.stringMatching(/, taken away by ".+": "stuck"$/),
    });
  });

  it("'throw' learns of a loss from the release too", async () => {
    const jobs = await nest.servedWith({ onLost: 'throw' }, () => nest.store.forceRelease('job'));
    await expect(jobs.run()).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'deleted' });
  });

  it("'throw' does not replace the method's own error", async () => {
    const failure = new Error('business');
    const jobs = await nest.servedWith({ onLost: 'throw' }, () =>
      losing().then(() => Promise.reject(failure)),
    );
    await expect(jobs.run()).rejects.toBe(failure);
  });
});
