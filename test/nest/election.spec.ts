import 'reflect-metadata';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Injectable, type INestApplicationContext, type Provider, Scope, type Type } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { EventEmitter2, EventEmitterModule, OnEvent } from '@nestjs/event-emitter';
import { Cron, Interval, ScheduleModule } from '@nestjs/schedule';
import { Test } from '@nestjs/testing';
import { defer, type Observable, of } from 'rxjs';
import {
  assertLocked,
  DistributedLock,
  LockModule,
  type LockModuleOptions,
  LockService,
  MemoryLockStore,
  OnLeader,
  OnlyLeader,
  type Term,
} from '../../lib/index.js';
import { passThroughLocks } from '../../lib/testing/index.js';
import { deferred } from '../doubles/deferred.js';
import { pass, until, useVirtualTime } from '../support/virtual-time.js';

useVirtualTime();

let store: MemoryLockStore;
let apps: INestApplicationContext[];
let logged: unknown[][];

beforeEach(() => {
  store = new MemoryLockStore();
  apps = [];
  logged = [];
});

afterEach(async () => {
  await Promise.all(apps.map((app) => app.close()));
});

async function boot(providers: Provider[], options: LockModuleOptions = {}, controllers: Type[] = []) {
  const module = await Test.createTestingModule({
    imports: [
      LockModule.forRoot({ store, ...options }),
      ScheduleModule.forRoot(),
      EventEmitterModule.forRoot(),
    ],
    providers,
    controllers,
  }).compile();
  const app = module.createNestApplication();
  const log = (...words: unknown[]) => logged.push(words);
  app.useLogger({ log: () => undefined, error: log, warn: log, fatal: log });
  await app.init();
  apps.push(app);
  return app;
}

const ended = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => {
      resolve();
    });
  });

describe('@OnLeader', () => {
  it('runs the method of one application at a time, for each term anew, with the term', async () => {
    const terms: [unknown, number][] = [];
    let running = 0;
    @Injectable()
    class Feed {
      @OnLeader('feed')
      async follow({ number, signal }: Term) {
        terms.push([this, number]);
        expect(++running).toBe(1);
        await ended(signal);
        await pass(20);
        running--;
      }
      @OnLeader('feed')
      async once(): Promise<void> {
        // It returns, and the application leads on.
      }
    }
    const [a, b] = [await boot([Feed]), await boot([Feed])];
    await until(() => terms.length === 1);
    expect(terms[0]![0]).toBe(a.get(Feed));
    await a.get(LockService).getElection('feed').resign();
    await until(() => terms.length === 2);
    expect(terms[1]![0]).toBe(b.get(Feed));
    await b.close();
    expect(running).toBeLessThanOrEqual(1);
    await until(() => terms.length === 3);
    expect(terms[2]![0]).toBe(a.get(Feed));
    expect(terms.map(([, number]) => number)).toEqual(
      terms.map(([, number]) => number).toSorted((x, y) => x - y),
    );
    await a.close();
    expect(running).toBe(0);
    expect(logged).toEqual([]);
  });

  it('resigns when the method throws, tells so, and campaigns again after a pause', async () => {
    const runs: unknown[] = [];
    @Injectable()
    class Feed {
      @OnLeader('feed')
      async follow({ signal }: Term) {
        runs.push(this);
        if (runs.length === 1) throw new Error('no feed');
        await ended(signal);
      }
      @OnLeader('feed')
      async other({ signal }: Term) {
        await ended(signal); // told, so that the lock is free
      }
    }
    const [a, b] = [await boot([Feed]), await boot([Feed])];
    await until(() => runs.length === 2);
    expect(runs).toEqual([a.get(Feed), b.get(Feed)]);
    expect(logged).toHaveLength(1);
    expect(String(logged[0]![0])).toMatch(/@OnLeader on Feed.follow has failed .* 1000 ms: no feed/);
    await b.close();
    await until(() => runs.length === 3);
    expect(runs[2]).toBe(a.get(Feed));
  });

  it('that has failed is not called again at once, even if no other process wants to lead', async () => {
    let calls = 0;
    @Injectable()
    class Feed {
      @OnLeader('feed')
      follow(): void {
        calls++;
        throw new Error('no feed');
      }
    }
    await boot([Feed]);
    await until(() => calls === 1);
    await pass(100);
    expect(calls).toBe(1);
  });

  it.each([true, false])('refuses work that has not begun with the call (enabled: %p)', async (enabled) => {
    let begun = 0;
    const cold = defer(() => of(++begun));
    @Injectable()
    class Feed {
      @OnLeader('feed')
      follow(): Observable<number> {
        return cold;
      }
      @OnLeader('rows')
      async read(): Promise<AsyncGenerator<number>> {
        return Promise.resolve(rows());
      }
    }
    async function* rows() {
      yield Promise.resolve(++begun);
    }
    const app = await boot([Feed], { enabled });
    await until(() => logged.length === 2);
    const lines = logged.map(([line]) => String(line)).toSorted();
    expect(lines[0]).toMatch(/@OnLeader on Feed.follow has failed .*: Feed.follow: has given an Observable/);
    expect(lines[1]).toMatch(/@OnLeader on Feed.read has failed .*: Feed.read: has given an async iterator/);
    await until(() => app.get(LockService).leases().length === 0);
    expect(begun).toBe(0);
  });

  it('is inherited, and runs what a subclass has put in its place', async () => {
    const runs: string[] = [];
    class Base {
      @OnLeader('feed', { leaseTime: '20s' })
      follow() {
        runs.push('base');
      }
    }
    @Injectable()
    class Feed extends Base {
      override follow() {
        runs.push('feed');
      }
    }
    const app = await boot([Feed]);
    await until(() => runs.length === 1);
    expect(runs).toEqual(['feed']);
    expect(app.get(LockService).leases()[0]?.remainingTime()).toBeLessThan(20_000);
  });

  it('fails the boot where Nest makes instances on demand, and where lease times differ', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class PerRequest {
      @OnLeader('feed')
      follow(): void {
        // never
      }
    }
    @Injectable()
    class Differing {
      @OnLeader('feed', { leaseTime: 5_000 })
      one(): void {
        // never
      }
      @OnlyLeader('feed', { leaseTime: '6s' })
      async other(): Promise<void> {
        // never
      }
    }
    await expect(boot([PerRequest])).rejects.toThrow('@OnLeader on PerRequest.follow: needs a class');
    await expect(boot([Differing])).rejects.toThrow('must agree');
  });

  it('fails the boot for an object that Nest has not made, and runs what a factory passes on', async () => {
    let calls = 0;
    @Injectable()
    class Feed {
      @OnLeader('feed')
      follow(): void {
        calls++;
      }
    }
    const useFactory = () => new Feed();
    await expect(boot([{ provide: Feed, useFactory }])).rejects.toThrow('Feed.follow: has @OnLeader, but');
    await expect(boot([{ provide: 'feed', useValue: new Feed() }])).rejects.toThrow(
      'but Nest has injected no',
    );
    const restore = passThroughLocks();
    await boot([{ provide: Feed, useFactory }]).finally(restore);
    expect(calls).toBe(0);
    const made = { provide: 'feed', inject: [ModuleRef], useFactory: (nest: ModuleRef) => nest.create(Feed) };
    const app = await boot([made, { provide: 'again', useExisting: 'feed' }]);
    await until(() => calls > 0);
    expect(calls).toBe(1);
    await expect(app.get(ModuleRef).create(Feed)).rejects.toThrow('this one is made later');
  });

  it('says why it cannot campaign, and tries again with longer pauses', async () => {
    let terms = 0;
    @Injectable()
    class Feed {
      @OnLeader('feed')
      follow(): void {
        terms++;
      }
    }
    const other = new LockService({ store });
    const lease = await other.getFairLock('feed').acquire();
    await boot([Feed]);
    await until(() => logged.length === 2);
    expect(String(logged)).toMatch(/"feed", trying again in 1000 ms: .*"feed", trying again in 2000 ms: /s);
    await lease.release();
    await until(() => terms === 1);
    await other.close();
  });

  it('refuses a wrong place, name and option where it is applied', () => {
    const on = (election: string, options?: object) => () => {
      class Feed {
        @OnLeader(election, options)
        follow(): void {
          // never
        }
      }
      return Feed;
    };
    expect(on('')).toThrow('@OnLeader on Feed.follow');
    expect(on('feed', { lease: 1 })).toThrow('is not an option');
    expect(on('feed', { leaseTime: 1 })).toThrow('leaseTime');
    expect(on('feed', { instance: '' })).toThrow('@OnLeader on Feed.follow');
    expect(() => {
      class Feed {
        @OnLeader('feed')
        async *follow() {
          // never
        }
      }
      return Feed;
    }).toThrow('@OnLeader on Feed.follow: cannot go on a generator');
    expect(() => {
      class Feed {
        @OnLeader('feed')
        static follow(): void {
          // never
        }
        name = '';
      }
      return Feed;
    }).toThrow('goes on an instance method');
  });

  it('runs without a lock where the module has none, and is told of the shutdown', async () => {
    let told: Term | undefined;
    @Injectable()
    class Feed {
      @OnLeader('feed')
      follow(term: Term) {
        assertLocked('feed');
        told = term;
      }
      @OnlyLeader('feed')
      sync(): string | undefined {
        return 'ran';
      }
    }
    const app = await boot([Feed], { enabled: false });
    expect(told?.number).toBe(0);
    expect(app.get(Feed).sync()).toBe('ran');
    await app.close();
    expect(told?.signal.aborted).toBe(true);
  });
});

describe('@OnlyLeader', () => {
  it('lets schedules and events of the leader run, and skips those of others', async () => {
    const runs: [string, unknown][] = [];
    @Injectable()
    class Jobs {
      @Interval(10)
      @OnlyLeader('jobs')
      async often(): Promise<void> {
        runs.push(['interval', this]);
        await Promise.resolve();
      }
      @OnlyLeader('jobs')
      @Cron('* * * * * *')
      cron(): void {
        runs.push(['cron', this]);
      }
      @OnEvent('order')
      @OnlyLeader('jobs')
      async on(order: number): Promise<number | undefined> {
        runs.push(['event', this]);
        return Promise.resolve(order);
      }
    }
    const [a, b] = [await boot([Jobs]), await boot([Jobs])];
    const locks = a.get(LockService);
    await until(() => locks.getElection('jobs').isLeader());
    const events = [a, b].map((app) => app.get(EventEmitter2).emitAsync('order', 7));
    expect((await Promise.all(events)).flat()).toEqual([7, undefined]);
    expect(await b.get(Jobs).on(1)).toBeUndefined();
    b.get(Jobs).cron();
    await until(() => new Set(runs.map(([what]) => what)).size === 3);
    expect(runs.every(([, jobs]) => jobs === a.get(Jobs))).toBe(true);
    await a.close();
    await until(() => runs.some(([, jobs]) => jobs === b.get(Jobs)));
    expect(logged).toEqual([]);
  });

  it('keeps the lock until the calls of the term have ended', async () => {
    const gate = deferred();
    @Injectable()
    class Jobs {
      @OnlyLeader('jobs')
      async run(): Promise<string | undefined> {
        await gate.promise;
        return 'ran';
      }
    }
    const [a, b] = [await boot([Jobs]), await boot([Jobs])];
    const [mine, theirs] = [a, b].map((app) => app.get(LockService).getElection('jobs'));
    await until(() => mine!.isLeader());
    const call = a.get(Jobs).run();
    const resigned = mine!.resign();
    await pass(30);
    expect(await a.get(Jobs).run()).toBeUndefined();
    expect(theirs!.isLeader()).toBe(false);
    gate.resolve();
    expect(await call).toBe('ran');
    await resigned;
    await until(() => theirs!.isLeader());
  });

  it.each([
    ['asynchronous', true],
    ['synchronous', false],
  ])('keeps the lock for Promises in the result of an %s call', async (_, isAsync) => {
    const gate = deferred();
    @Injectable()
    class Jobs {
      @OnlyLeader('jobs')
      run(): unknown {
        const works = [1, 2].map(() => gate.promise);
        return isAsync ? Promise.resolve(works) : works;
      }
    }
    const app = await boot([Jobs]);
    const election = app.get(LockService).getElection('jobs');
    await until(() => election.isLeader());
    expect(await app.get(Jobs).run()).toHaveLength(2);
    const resigned = election.resign();
    await pass(100);
    expect([election.state, await store.inspect('jobs')]).toEqual(['resigning', expect.any(Object)]);
    gate.resolve();
    await resigned;
    await until(() => election.state !== 'resigning');
  });

  it('may resign in a call, which does not wait for its own end', async () => {
    @Injectable()
    class Jobs {
      constructor(private readonly locks: LockService) {}
      @OnlyLeader('jobs', { leaseTime: 3_000 })
      async run(): Promise<void> {
        await this.locks.getElection('jobs').resign();
      }
    }
    const app = await boot([Jobs]);
    await until(() => app.get(LockService).getElection('jobs').isLeader());
    const begun = performance.now();
    await app.get(Jobs).run();
    expect(performance.now() - begun).toBeLessThan(1_500);
  });

  it('gives a call of the term its further locks at the shutdown', async () => {
    const [begun, gate] = [deferred(), deferred()];
    @Injectable()
    class Jobs {
      @OnlyLeader('jobs')
      async run(): Promise<string | undefined> {
        begun.resolve();
        await gate.promise;
        return await this.pay();
      }
      @DistributedLock('order')
      async pay() {
        return Promise.resolve('paid');
      }
    }
    const app = await boot([Jobs]);
    const [jobs, locks] = [app.get(Jobs), app.get(LockService)];
    await until(() => locks.getElection('jobs').isLeader());
    const call = jobs.run();
    await begun.promise;
    const closing = app.close();
    await until(() => !locks.getElection('jobs').isLeader());
    gate.resolve();
    expect(await call).toBe('paid');
    await closing;
  });

  it('has a lease time of its own, also in an object that Nest makes after the boot', async () => {
    @Injectable()
    class Late {
      @OnlyLeader('late', { leaseTime: 5_000 })
      async run(): Promise<string | undefined> {
        return Promise.resolve('led');
      }
    }
    const app = await boot([]);
    const late = await app.get(ModuleRef).create(Late);
    await until(() => app.get(LockService).getElection('late').isLeader());
    expect(await late.run()).toBe('led');
    const [holder] = (await app.get(LockService).inspect('late'))?.holders ?? [];
    expect(holder?.remainingTime).toBeLessThanOrEqual(5_000);
  });

  it('passes errors on, refuses objects that Nest has not made, and passes through in unit tests', async () => {
    @Injectable()
    class Jobs {
      @OnlyLeader('jobs')
      async run(): Promise<void> {
        return Promise.reject(new Error('no work'));
      }
      @OnlyLeader('jobs')
      count(): number | undefined {
        throw new Error('nothing to count');
      }
    }
    const app = await boot([Jobs]);
    await until(() => app.get(LockService).getElection('jobs').isLeader());
    await expect(app.get(Jobs).run()).rejects.toThrow('no work');
    expect(() => app.get(Jobs).count()).toThrow('nothing to count');
    await expect(new Jobs().run()).rejects.toThrow('has @OnlyLeader, but Nest has injected no LockService');
    const restore = passThroughLocks();
    await expect(new Jobs().run()).rejects.toThrow('no work');
    restore();
  });
});
