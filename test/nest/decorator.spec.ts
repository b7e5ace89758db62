import 'reflect-metadata';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Injectable, SetMetadata } from '@nestjs/common';
import { setTimeout as sleep } from 'node:timers/promises';
import { assertLocked, currentLease, DistributedLock } from '../../lib/index.js';
import { DecoratedApp } from './decorated-app.js';

let nest: DecoratedApp;

beforeEach(() => {
  nest = new DecoratedApp();
});

afterEach(() => nest.close());

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

  it('may have a Symbol for a name', async () => {
    const run = Symbol('run');
    @Injectable()
    class Jobs {
      @DistributedLock('job:$<class>:$<method>')
      async [run](): Promise<string | undefined> {
        return Promise.resolve(currentLease()?.name);
      }
    }
    expect(await (await nest.make(Jobs))[run]()).toBe('job:Jobs:Symbol(run)');
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
    @DistributedLock('deep')
    async recurse(n: number): Promise<number> {
      return n === 0 ? 0 : 1 + (await this.recurse(n - 1));
    }
  }

  it('A calls B with the same key, across services, without a command', async () => {
    const outer = (await nest.boot(Inner, Outer)).get(Outer);
    const tokens = await outer.run('7');
    expect(new Set(tokens).size).toBe(1);
    expect(nest.store.calls).toMatchObject({ acquire: 1, release: 1 });
  });

  it('recurses', async () => {
    const outer = (await nest.boot(Inner, Outer)).get(Outer);
    expect(await outer.recurse(20)).toBe(20);
    expect(nest.store.calls).toMatchObject({ acquire: 1, release: 1 });
  });
});
