import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Controller, type INestApplication, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { Cron, Interval, ScheduleModule } from '@nestjs/schedule';
import { Test } from '@nestjs/testing';
import { lastValueFrom, type Observable, of, toArray } from 'rxjs';
import { DistributedLock, LockModule, LockService, MemoryLockStore, OncePer } from '../../lib/index.js';
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

/** Runs this inside of a lock of a service that is closed meanwhile. */
const whileClosing = <T>(work: () => Promise<T>): Promise<T> =>
  locks.using('outer', async () => {
    await locks.close(); // which does not wait for the code that calls it
    await expect(other.using('free', () => 1)).resolves.toBe(1);
    return await work();
  });

describe('while a service closes, what runs inside of a lock', () => {
  it('gets every kind of further lock, by hand too', async () => {
    await whileClosing(async () => {
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
    await locks.close();
    expect(await store.inspect('b')).toBeNull(); // what the callback has left
  });

  it.each(['getLock', 'getFairLock'] as const)('goes on waiting for them (%s, pitfall 66)', async (get) => {
    const [busy, begun] = [await other[get]('a').acquire(), deferred()];
    const work = locks.using('outer', async () => {
      const waiting = locks[get]('a').acquire();
      begun.resolve();
      return await waiting.then(({ held }) => held);
    });
    const outside = locks[get]('a').acquire();
    const refused = expect(outside).rejects.toMatchObject(CLOSED);
    await begun.promise;
    await sleep(5);
    const closed = locks.close();
    await refused;
    await busy.release();
    expect(await work).toBe(true);
    await closed;
  });

  it('gets none once its lock is lost', async () => {
    await whileClosing(async () => {
      await locks.forceRelease('outer');
      await expect(locks.acquire('a')).rejects.toMatchObject(CLOSED);
      await expect(locks.runInScope(() => locks.acquire('a'))).rejects.toMatchObject(CLOSED);
    });
  });
});

describe('while a service closes, a lock', () => {
  it.each<[string, (work: () => Promise<void>) => Promise<unknown>]>([
    ['using', (work) => locks.using('a', work)],
    ['several', (work) => locks.using(['a', 'b'], work)],
    ['a fair lock', (work) => locks.using('a', { kind: 'fair' }, work)],
    ['once', (work) => locks.once('a', { period: '1h' }, work)],
    [
      'by hand, with a callback inside',
      (work) => locks.runInScope(() => byHand(() => locks.using('a', work))),
    ],
    ['an election', (work) => locks.getElection('a').run(work)],
  ])('is kept while its callback runs, and back afterwards: %s (pitfall 25)', async (_, begin) => {
    const [begun, gate] = [deferred(), deferred()];
    let isKept: boolean | undefined;
    const work = begin(async () => {
      begun.resolve();
      await gate.promise;
      isKept = (await store.inspect('a')) !== null;
    });
    await begun.promise;
    let isClosed = false;
    const closed = locks.close().then(() => (isClosed = true));
    await expect(locks.acquire('c')).rejects.toMatchObject(CLOSED);
    await sleep(20);
    expect([isClosed, (await store.inspect('a'))?.holders.length]).toEqual([false, 1]);
    gate.resolve();
    await Promise.all([work, closed]);
    expect(isKept).toBe(true);
    expect(await store.inspect('a')).toBeNull();
  });

  const byHand = async <T>(work: () => Promise<T>): Promise<T> => {
    await locks.acquire('a');
    return await work();
  };

  it('that is held by hand around the lock of a callback is released, too, and the callback goes on', async () => {
    const [begun, gate] = [deferred(), deferred()];
    const work = locks.runInScope(async () => {
      const outer = await locks.acquire('outer');
      return await locks.using('inner', async (inner) => {
        begun.resolve();
        await gate.promise;
        return [outer.held, inner.held];
      });
    });
    await begun.promise;
    const closed = locks.close();
    gate.resolve();
    expect(await work).toEqual([false, true]);
    await closed;
  });

  it('that is granted as the last one is back, before its caller begins, is given back', async () => {
    // The two answers come together, and each may be some steps ahead.
    const steps = Array.from({ length: 21 }, (_, index) => index - 10);
    for (const lead of steps) await grantedAtTheEnd(String(lead), Math.max(0, lead), Math.max(0, -lead));
    const late = await Promise.all(steps.map((lead) => store.inspect(`late ${String(lead)}`)));
    expect(late).toEqual(steps.map(() => null));
  });

  /** Closes a service that gets its last grant together with the answer to its last release. */
  async function grantedAtTheEnd(id: string, beforeGrant: number, beforeRelease: number): Promise<void> {
    const answer = deferred();
    const after = async <T>(steps: number, reply: T): Promise<T> => {
      await answer.promise;
      for (let step = 0; step < steps; step++) await Promise.resolve();
      return reply;
    };
    const slow: MemoryLockStore = Object.assign(Object.create(store) as MemoryLockStore, {
      acquire: async (request: Parameters<MemoryLockStore['acquire']>[0]) => {
        const reply = await store.acquire(request);
        return request.name === `late ${id}` ? await after(beforeGrant, reply) : reply;
      },
      release: async (request: Parameters<MemoryLockStore['release']>[0]) => {
        const reply = await store.release(request);
        return request.name === `left ${id}` ? await after(beforeRelease, reply) : reply;
      },
    });
    const closing = new LockService({ store: slow });
    const refused: Promise<unknown>[] = [];
    await closing.using('outer', async () => {
      await closing.acquire(`left ${id}`);
      await closing.close(); // which does not wait for the code that calls it
      refused.push(expect(closing.acquire(`late ${id}`)).rejects.toMatchObject(CLOSED));
    });
    await until(async () => (await store.inspect(`left ${id}`)) === null);
    answer.resolve();
    await Promise.all([closing.close(), ...refused]);
  }

  it('whose callback does not end stays a lease time, and is then left to its own end, never released', async () => {
    const short = new LockService({ store, leaseTime: 400 });
    let released = 0;
    const release = store.release.bind(store);
    const spy = jest.spyOn(store, 'release').mockImplementation(async (request) => {
      released++;
      return await release(request);
    });
    const [begun, told] = [deferred(), deferred()];
    let reason: unknown;
    void short.using('a', async ({ signal }) => {
      signal.addEventListener('abort', () => {
        reason = signal.reason;
        told.resolve();
      });
      begun.resolve();
      await new Promise(() => undefined);
    });
    await begun.promise;
    await short.close();
    await told.promise;
    expect([released, reason]).toMatchObject([0, { reason: 'expired' }]);
    await (await other.acquire('a')).release();
    spy.mockRestore();
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
    const closing = app.close();
    await until(async () => (await app.get(LockService).health()).status === 'down');
    await closing;
    expect([
      await app.get(Jobs).often(),
      await lastValueFrom(app.get(Jobs).stream().pipe(toArray())),
    ]).toEqual([undefined, []]);
    expect(logged).toEqual([]);
    gate.resolve();
    await slow;
    await app.get(LockService).close();
    // Afterwards it is no shutdown, but a service that is not there, also if the application closes once more.
    await expect(app.get(Jobs).often()).rejects.toMatchObject(CLOSED);
    await app.close();
    await expect(app.get(Jobs).often()).rejects.toMatchObject(CLOSED);
  });
});

it('says in health() that it ends, so that a load balancer takes it out', async () => {
  expect((await locks.health()).status).toBe('up');
  locks.beforeApplicationShutdown();
  expect((await locks.health()).status).toBe('down');
  await locks.onApplicationShutdown();
  expect((await locks.health()).status).toBe('down');
});

/** The release of a lock and the note of a success take a while. */
function slowStore(): MemoryLockStore {
  const fast = new MemoryLockStore();
  const later =
    <Given, Answer>(ask: (given: Given) => Promise<Answer>) =>
    async (given: Given) => {
      await sleep(30);
      return await ask(given);
    };
  return Object.assign(fast, {
    release: later(fast.release.bind(fast)),
    periods: { ...fast.periods, remember: later(fast.periods.remember) },
  });
}

/** A hook waits for the work inside of its callbacks. */
@Injectable()
class Job implements OnApplicationShutdown {
  readonly begun = deferred();
  private readonly gate = deferred();

  constructor(private readonly service: LockService) {}

  @DistributedLock('job')
  async alone(): Promise<void> {
    await this.run();
    // As wrappers around the work add steps.
    for (let steps = 0; steps < 20; steps++) await Promise.resolve();
  }

  @DistributedLock('job')
  async nested(): Promise<void> {
    await this.service.using('inner', () => this.run());
  }

  @OncePer('job', { period: '1h' })
  async once(): Promise<void> {
    await this.run();
  }

  async onApplicationShutdown(): Promise<void> {
    this.gate.resolve();
    await this.gate.promise;
  }

  private async run(): Promise<void> {
    this.begun.resolve();
    await this.gate.promise;
  }
}

it.each(['alone', 'nested', 'once'] as const)(
  'the lock of work for which a hook has waited inside of its callback is back when the application has ended: %s',
  async (way) => {
    store = slowStore();
    const app = await Test.createTestingModule({
      imports: [LockModule.forRoot({ store })],
      providers: [Job],
    }).compile();
    await app.init();
    const job = app.get(Job);
    const running = job[way]();
    await job.begun.promise;
    await app.close();
    expect([await store.inspect('job'), await store.inspect('inner')]).toEqual([null, null]);
    expect(await store.periods.recall('job')).toEqual(way === 'once' ? expect.any(Number) : undefined);
    await running;
  },
);
