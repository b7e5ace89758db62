import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, type INestApplication, UseInterceptors } from '@nestjs/common';
import { Cron, Interval, ScheduleModule } from '@nestjs/schedule';
import { Test } from '@nestjs/testing';
import { lastValueFrom, type Observable, of, toArray } from 'rxjs';
import {
  DistributedLock,
  getLockServiceToken,
  LockInterceptor,
  LockModule,
  LockService,
  MemoryLockStore,
} from '../../lib/index.js';
import { deferred } from '../doubles/deferred.js';
import { until } from '../scenarios/until.js';

const CLOSED = { code: 'LOCK_CLOSED' };

let store: MemoryLockStore;
let locks: LockService;
/** Another process on the same store. */
let other: LockService;

beforeEach(() => {
  store = new MemoryLockStore();
  locks = new LockService({ store });
  other = new LockService({ store });
});

afterEach(async () => {
  await Promise.all([locks, other].map((service) => service.onApplicationShutdown()));
});

/** Runs this inside of a lock, while the service drains. */
const whileDraining = <T>(work: () => Promise<T>): Promise<T> =>
  locks.using('outer', async () => {
    locks.beforeApplicationShutdown();
    await expect(other.using('free', () => 1)).resolves.toBe(1);
    return await work();
  });

describe('while the application shuts down, what runs inside of a lock', () => {
  it('gets every kind of further lock, by hand too', async () => {
    await whileDraining(async () => {
      expect(await locks.using('a', () => 1)).toBe(1);
      for (const lock of [
        locks.getLock('b'),
        locks.getFairLock('c'),
        locks.getReadWriteLock('d').write,
        locks.getSemaphore('e', 2),
        locks.getMultiLock([locks.getLock('f'), locks.getLock('g'), locks.getFairLock('h')]),
      ]) {
        const lease = await lock.acquire();
        expect(lease.held).toBe(true);
        await lease.release();
        expect(await lock.tryAcquire()).toMatchObject({ held: true });
      }
      expect(await locks.using(['i', 'j'], () => locks.using('k', () => 2))).toBe(2);
    });
  });

  it('gets them of another service, and in a scope of its own', async () => {
    await whileDraining(async () => {
      other.beforeApplicationShutdown();
      expect(await other.using('a', () => 1)).toBe(1);
      const nested = locks.runInScope(() => locks.runInScope(() => locks.using('b', () => 2)));
      expect(await nested).toBe(2);
    });
  });

  it.each(['getLock', 'getFairLock'] as const)('goes on waiting for them (%s)', async (get) => {
    const [busy, begun] = [await other[get]('a').acquire(), deferred()];
    const work = locks.using('outer', async () => {
      const waiting = locks[get]('a').acquire();
      begun.resolve();
      return await waiting;
    });
    const outside = locks[get]('a').acquire();
    await begun.promise;
    await sleep(5);
    locks.beforeApplicationShutdown();
    await expect(outside).rejects.toMatchObject(CLOSED);
    await busy.release();
    expect((await work).held).toBe(true);
  });

  it('is handed a lock on by other work that drains', async () => {
    const gate = deferred();
    const first = locks.using('a', () => gate.promise);
    const second = locks.using('outer', () => locks.using('a', () => 2));
    await until(async () => (await locks.health()).waiting === 1);
    locks.beforeApplicationShutdown();
    gate.resolve();
    await first;
    expect(await second).toBe(2);
  });

  it('gets none once its lock is lost', async () => {
    await whileDraining(async () => {
      await locks.forceRelease('outer');
      await expect(locks.acquire('a')).rejects.toMatchObject(CLOSED);
      await expect(locks.runInScope(() => locks.acquire('a'))).rejects.toMatchObject(CLOSED);
    });
  });

  it('gets none at its end, and neither does what waits', async () => {
    const [busy, closed] = [await other.acquire('a'), deferred()];
    const work = locks.using('outer', async () => {
      const waiting = locks.acquire('a').catch((error: unknown) => error);
      await sleep(5);
      locks.beforeApplicationShutdown();
      await sleep(5);
      await locks.onApplicationShutdown();
      closed.resolve();
      return [await waiting, await locks.acquire('b').catch((error: unknown) => error)];
    });
    await closed.promise;
    expect(await work).toEqual([expect.objectContaining(CLOSED), expect.objectContaining(CLOSED)]);
    await busy.release();
  });
});

describe('while the application shuts down, other work', () => {
  it('gets no lock, nor what another had begun to wait for', async () => {
    const busy = await other.acquire('a');
    const waiting = [locks.acquire('a'), locks.acquire(['a', 'b']), locks.getFairLock('c').acquire()];
    await waiting.pop();
    const refused = Promise.allSettled(waiting);
    await sleep(5);
    locks.beforeApplicationShutdown();
    for (const result of await refused) expect(result).toMatchObject({ reason: CLOSED });
    for (const name of ['free', ['free', 'too']]) {
      await expect(locks.using(name, () => 1)).rejects.toMatchObject(CLOSED);
    }
    await expect(locks.getFairLock('fair').acquire()).rejects.toMatchObject(CLOSED);
    await expect(locks.runInScope(() => locks.tryAcquire('free'))).rejects.toMatchObject(CLOSED);
    await busy.release();
  });
});

describe('an application', () => {
  let app: INestApplication;
  const logged: unknown[][] = [];

  const boot = async (...classes: (new (...args: never[]) => object)[]) => {
    logged.length = 0;
    const module = await Test.createTestingModule({
      imports: [
        LockModule.forRoot({ store }),
        LockModule.forRoot({ name: 'audit', store }),
        ScheduleModule.forRoot(),
      ],
      controllers: classes,
    }).compile();
    app = module.createNestApplication();
    const log = (...words: unknown[]) => logged.push(words);
    app.useLogger({ log: () => undefined, error: log, warn: log, fatal: log });
    await app.listen(0, '127.0.0.1');
    return await app.getUrl();
  };

  it('lets a request finish that needs a second lock, and a third by hand', async () => {
    const gate = deferred();
    const steps: string[] = [];
    @Controller()
    class Orders {
      @DistributedLock('order')
      @Get('pay')
      async pay() {
        steps.push('charged');
        await gate.promise;
        await this.book();
        const lease = await app.get<LockService>(getLockServiceToken('audit')).acquire('log');
        steps.push('logged');
        await lease.release();
        return 'paid';
      }
      @DistributedLock('ledger')
      async book() {
        steps.push('booked');
        return Promise.resolve();
      }
    }
    const url = await boot(Orders);
    const answer = fetch(`${url}/pay`);
    await until(() => steps.length === 1);
    const closing = app.close();
    await sleep(20);
    await expect(app.get(LockService).acquire('other')).rejects.toMatchObject(CLOSED);
    gate.resolve();
    expect(await (await answer).text()).toBe('paid');
    await closing;
    expect(steps).toEqual(['charged', 'booked', 'logged']);
    expect(await store.inspect('order')).toBeNull();
  });

  it("says nothing of jobs that it does not begin any more, with onBusy 'skip'", async () => {
    const gate = deferred();
    let runs = 0;
    @Controller()
    class Jobs {
      @Interval(5)
      @DistributedLock('job', { onBusy: 'skip' })
      async often(): Promise<unknown> {
        runs++;
        return Promise.resolve();
      }
      @Cron('* * * * * *')
      @DistributedLock('cron', { onBusy: 'skip', waitTime: 0 })
      async cron() {
        return Promise.resolve();
      }
      @DistributedLock('slow')
      async slow(): Promise<void> {
        await gate.promise;
      }
      @DistributedLock('stream', { returns: 'observable', onBusy: 'skip' })
      stream(): Observable<number> {
        return of(1);
      }
    }
    await boot(Jobs);
    const slow = app.get(Jobs).slow();
    await until(() => runs > 2);
    for (const name of [undefined, 'audit']) {
      app.get<LockService>(getLockServiceToken(name)).beforeApplicationShutdown();
    }
    const before = runs;
    await sleep(50);
    expect(await app.get(Jobs).often()).toBeUndefined();
    expect(await lastValueFrom(app.get(Jobs).stream().pipe(toArray()))).toEqual([]);
    expect(runs).toBe(before);
    gate.resolve();
    await slow;
    await app.close();
    expect(logged).toEqual([]);
    // Afterwards it is no shutdown, but a service that is not there.
    await expect(app.get(Jobs).often()).rejects.toMatchObject(CLOSED);
  });

  it('tells a request of a skipping interceptor to ask another instance', async () => {
    @Controller()
    class Reports {
      @UseInterceptors(LockInterceptor('report', { onBusy: 'skip' }))
      @Get('report')
      report() {
        return 'reported';
      }
    }
    const url = await boot(Reports);
    expect(await (await fetch(`${url}/report`)).text()).toBe('reported');
    app.get(LockService).beforeApplicationShutdown();
    expect((await fetch(`${url}/report`)).status).toBe(503);
    await app.close();
  });
});

it('says in health() that it gives out no lock any more, so that a load balancer takes it out', async () => {
  expect((await locks.health()).status).toBe('up');
  locks.beforeApplicationShutdown();
  expect((await locks.health()).status).toBe('down');
  await locks.onApplicationShutdown();
  expect((await locks.health()).status).toBe('down');
});
