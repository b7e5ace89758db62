import 'reflect-metadata';
import { afterEach, describe, expect, it } from '@jest/globals';
import {
  ConflictException,
  Controller,
  Get,
  Injectable,
  Param,
  type Type,
  UseInterceptors,
} from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { setTimeout as sleep } from 'node:timers/promises';
import { Observable, of, Subject } from 'rxjs';
import {
  type CallOptions,
  currentLease,
  DistributedLock,
  LockInterceptor,
  LockModule,
  LockService,
} from '../../lib/index.js';
import { Entries } from '../doubles/entries.js';

let app: TestingModule | undefined;

afterEach(async () => {
  await app?.close();
  app = undefined;
});

@Injectable()
class Accounts {
  async ownerOf(id: string): Promise<string> {
    await sleep(2);
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
      await sleep(this.keyTime);
      return 'slow';
    },
    { waitTime: 500, onBusy: ({ error }) => error.waited },
  )
  async slow(): Promise<number> {
    return Promise.resolve(-1);
  }

  @DistributedLock(
    async function (this: Transfers) {
      await sleep(this.keyTime);
      return ['one', 'two'];
    },
    { waitTime: '0s' },
  )
  async once(): Promise<number> {
    return Promise.resolve(++this.ran);
  }
}

describe('a key that is given later', () => {
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

  it.each([
    ['options', () => ({ waitTime: -1 })],
    ['the name of a preset', () => 'none'],
    ['a signal', { signal: () => 5 as never }],
    [
      'a function for its signal',
      {
        signal: () => {
          throw new Error('no signal');
        },
      },
    ],
  ])('leaves no rejection unhandled beside %s of the call that is wrong', async (_, options) => {
    const unhandled: unknown[] = [];
    const listener = (error: unknown) => unhandled.push(error);
    process.on('unhandledRejection', listener);
    let made = 0;
    class Wrong {
      @DistributedLock(async () => {
        made++;
        return Promise.reject(new Error('no key'));
      }, options as CallOptions)
      async run(): Promise<void> {
        return Promise.resolve();
      }
    }
    const wrong = await make(Wrong);
    await expect(wrong.run()).rejects.toThrow();
    await sleep(5);
    process.off('unhandledRejection', listener);
    expect(unhandled).toEqual([]);
    expect(made).toBeLessThan(2);
  });

  it('that does not come ends the call, and the method does not run', async () => {
    const transfers = await make(Transfers, 100);
    await expect(transfers.any(new Promise(() => undefined))).rejects.toMatchObject({
      code: 'LOCK_KEY',
      message: 'The key function of Transfers.any has given no key for 100 ms',
    });
    expect(transfers.ran).toBe(0);
  });

  it('is not waited for by a subscriber that is gone', async () => {
    const key = new Subject<string>();
    let subscribed = 0;
    class Streams {
      @DistributedLock(() => new Promise<string>((resolve) => key.subscribe(resolve)))
      rows(): Observable<number> {
        subscribed++;
        return of(1);
      }
    }
    const streams = await make(Streams);
    const seen: unknown[] = [];
    streams
      .rows()
      .subscribe({ next: (row) => seen.push(row), error: (error) => seen.push(error) })
      .unsubscribe();
    key.next('a');
    await sleep(5);
    expect([subscribed, seen]).toEqual([0, []]);
    expect(app!.get(LockService).leases()).toEqual([]);
  });
});

it('a request that gives no usable key in time is answered with 400', async () => {
  @Controller('carts')
  class Carts {
    @UseInterceptors(
      LockInterceptor(async (context) => {
        const { params } = context.switchToHttp().getRequest<{ params: { id: string } }>();
        return Promise.resolve(params.id === 'none' ? '' : `cart:${params.id}`);
      }),
    )
    @Get(':id')
    get(@Param('id') id: string) {
      return `${id} ${String(currentLease()?.name)}`;
    }
  }
  const module = await Test.createTestingModule({
    imports: [LockModule.forRoot({ store: 'memory' })],
    controllers: [Carts],
  }).compile();
  app = module;
  const server = module.createNestApplication();
  server.useLogger(false);
  await server.listen(0, '127.0.0.1');
  const url = await server.getUrl();
  expect(await (await fetch(`${url}/carts/5`)).text()).toBe('5 cart:5');
  const refused = await fetch(`${url}/carts/none`);
  expect([refused.status, await refused.json()]).toMatchObject([400, { code: 'LOCK_KEY' }]);
  await server.close();
});
