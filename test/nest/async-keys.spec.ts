import { afterEach, describe, expect, it } from '@jest/globals';
import {
  Body,
  ConflictException,
  Controller,
  type INestApplication,
  Injectable,
  Post,
  type Type,
} from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import 'reflect-metadata';
import { currentLease, DistributedLock, LockModule, LockService, OncePer } from '../../lib/index.js';
import { Entries } from '../doubles/entries.js';
import { pass, useVirtualTime } from '../support/virtual-time.js';

describe('a key that is given later', () => {
  useVirtualTime();
  let app: TestingModule | undefined;
  afterEach(async () => {
    await app?.close();
    app = undefined;
  });
  @Injectable()
  class Accounts {
    async ownerOf(id: string): Promise<string> {
      await pass(2);
      return `owner-${id.charAt(0)}`;
    }
  }
  const make = async <T>(type: Type<T>, waitTime = 10_000) => {
    const imports = [LockModule.forRoot({ store: 'memory', waitTime })];
    app = await Test.createTestingModule({ imports, providers: [Accounts, type] }).compile();
    await app.init();
    return app.get(type);
  };
  const entries = new Entries();
  @Injectable()
  class Transfers {
    ran = 0;
    keyTime = 0;

    constructor(readonly accounts: Accounts) {}

    @DistributedLock(async function (this: Transfers, id: string) {
      return this.accounts.ownerOf(id);
    })
    async run(id: string): Promise<string | undefined> {
      return entries.visit(currentLease()?.name, id.charAt(0));
    }

    @DistributedLock(async (key: unknown) => Promise.resolve(key as string))
    async any(...keys: unknown[]): Promise<number> {
      this.ran += keys.length;
      return Promise.resolve(this.ran);
    }

    @DistributedLock(
      async function (this: Transfers) {
        await pass(this.keyTime);
        return 'slow';
      },
      { waitTime: 500, onBusy: ({ error }) => error.waited },
    )
    async slow(): Promise<number> {
      return Promise.resolve(-1);
    }

    @DistributedLock(
      async function (this: Transfers) {
        await pass(this.keyTime);
        return ['one', 'two'];
      },
      { waitTime: '0s' },
    )
    async once(): Promise<number> {
      return Promise.resolve(++this.ran);
    }
  }

  it('may come from an injected service', async () => {
    const transfers = await make(Transfers);
    const names = await Promise.all(['a1', 'a2', 'b1'].map((id) => transfers.run(id)));
    expect(names).toEqual(['owner-a', 'owner-a', 'owner-b']);
    expect(entries.most).toBe(1);
  });

  it.each([
    ['no key', undefined],
    ['an empty list', []],
    ['a missing value', 'order:undefined'],
    ['an object', {}],
  ])('is refused with %s, and the method does not run', async (_, key) => {
    const transfers = await make(Transfers);
    await expect(transfers.any(key)).rejects.toMatchObject({ code: 'LOCK_KEY' });
    expect(transfers.ran).toBe(0);
  });

  it('passes the error of its function on', async () => {
    const transfers = await make(Transfers);
    await expect(transfers.any(Promise.reject(new ConflictException('no account')))).rejects.toThrow(
      'no account',
    );
    expect(transfers.ran).toBe(0);
  });

  it('counts as waiting for the lock, which is asked for once at least', async () => {
    const transfers = await make(Transfers);
    const lease = await app!.get(LockService).acquire('slow');
    // The wait time of the call is over by then.
    transfers.keyTime = 510;
    expect(await transfers.slow()).toBeLessThan(500);
    await lease.release();
    expect(await transfers.slow()).toBe(-1);
    transfers.keyTime = 5;
    expect(await transfers.once()).toBe(1);
  });

  it('is not waited for when the signal of the call aborts', async () => {
    class Slow {
      @DistributedLock(() => new Promise<string>(() => undefined), {
        signal: (signal: AbortSignal) => signal,
      })
      async run(signal: AbortSignal): Promise<boolean> {
        return Promise.resolve(signal.aborted);
      }
    }
    const slow = await make(Slow);
    const [before, later] = [AbortSignal.abort('a'), new AbortController()];
    await expect(slow.run(before)).rejects.toMatchObject({ code: 'LOCK_ABORTED', cause: 'a' });
    const waiting = slow.run(later.signal);
    later.abort('b');
    await expect(waiting).rejects.toMatchObject({ code: 'LOCK_ABORTED', cause: 'b' });
  });

  it('that does not come ends the call, and the method does not run', async () => {
    const transfers = await make(Transfers, 100);
    await expect(transfers.any(new Promise(() => undefined))).rejects.toMatchObject({
      code: 'LOCK_KEY',
      message: 'The key function of Transfers.any has given no key for 100 ms',
    });
    expect(transfers.ran).toBe(0);
  });
});

describe('a key of a handler', () => {
  interface Order {
    id?: string;
  }

  @Injectable()
  class Stock {
    @DistributedLock('stock:$<args[0].id>')
    async reserve(order: Order): Promise<Order> {
      return await Promise.resolve(order);
    }
  }

  @Controller('orders')
  class Orders {
    constructor(private readonly stock: Stock) {}

    @Post('template')
    @DistributedLock('order:$<args[0].id>')
    async template(@Body() order: Order): Promise<Order> {
      return await Promise.resolve(order);
    }

    @DistributedLock(async ({ id = '' }: Order) => Promise.resolve(id))
    @Post('function')
    async function(@Body() order: Order): Promise<Order> {
      return await Promise.resolve(order);
    }

    @Post('period')
    @OncePer('order:$<args[0].id>', { period: '1h' })
    async period(@Body() order: Order): Promise<Order | undefined> {
      return await Promise.resolve(order);
    }

    @Post('of-the-object')
    @DistributedLock('order:$<this.missing>')
    async ofTheObject(@Body() order: Order): Promise<Order> {
      return await Promise.resolve(order);
    }

    @Post('below')
    async below(@Body() order: Order) {
      await this.stock.reserve(order);
    }
  }

  let app: INestApplication;

  afterEach(() => app.close());

  it.each([
    ['template', 400],
    ['function', 400],
    ['period', 400],
    ['of-the-object', 500],
    ['below', 500],
  ])(
    'a request without a usable key is answered on a handler with the key of a %s: %d',
    async (path, status) => {
      const module = await Test.createTestingModule({
        imports: [LockModule.forRoot({ store: 'memory' })],
        controllers: [Orders],
        providers: [Stock],
      }).compile();
      app = module.createNestApplication();
      await app.listen(0, '127.0.0.1');
      const response = await fetch(`${await app.getUrl()}/orders/${path}`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ id: '' }),
      });
      expect(response.status).toBe(status);
      expect(await response.json()).toMatchObject({ statusCode: status, code: 'LOCK_KEY' });
    },
  );
});
