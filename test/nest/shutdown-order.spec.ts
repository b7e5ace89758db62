import 'reflect-metadata';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  type BeforeApplicationShutdown,
  type DynamicModule,
  Injectable,
  Module,
  type OnApplicationShutdown,
  type OnModuleDestroy,
} from '@nestjs/common';
import { LazyModuleLoader } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import {
  DistributedLock,
  getLockServiceToken,
  InjectLockService,
  type Lease,
  LockModule,
  LockService,
  MemoryLockStore,
  OnLeader,
  type Term,
} from '../../lib/index.js';
import { deferred } from '../doubles/deferred.js';
import { pass, until, useVirtualTime } from '../support/virtual-time.js';

useVirtualTime();

let store: MemoryLockStore;
/** Another process on the same store. */
let other: LockService;
let steps: string[];
/** What a consumer has seen in each of its hooks. Nest 12 logs what a hook throws, and goes on. */
let looks: unknown[];

beforeEach(() => {
  store = new MemoryLockStore();
  other = new LockService({ store });
  steps = [];
  looks = [];
});

afterEach(async () => {
  await Promise.all(other.leases().map((lease) => lease.release()));
  await other.close();
});

/** A consumer that stops at its own hook, as those of queues do: it starts work until then, and waits for it. */
@Injectable()
class Consumer implements OnModuleDestroy, BeforeApplicationShutdown, OnApplicationShutdown {
  ticket = '';
  byHand: Lease | undefined;
  private readonly stopped = deferred();
  private readonly running: Promise<unknown>[] = [];

  constructor(
    private readonly locks: LockService,
    @InjectLockService('audit') private readonly audit: LockService,
  ) {}

  async start(): Promise<void> {
    const begun = deferred();
    this.running.push(this.long(begun));
    await begun.promise;
    this.byHand = await this.locks.acquire('by hand');
    this.ticket = await (await other.acquire('travelling')).handOver();
  }

  @DistributedLock('long')
  private async long(begun: ReturnType<typeof deferred>): Promise<void> {
    begun.resolve();
    await this.stopped.promise;
    await this.audit.using('log', () => steps.push('long'));
  }

  onModuleDestroy(): Promise<void> {
    return this.look('destroy');
  }

  beforeApplicationShutdown(): Promise<void> {
    return this.look('before');
  }

  async onApplicationShutdown(): Promise<void> {
    await this.look('shutdown');
    await pass(30);
    const lease = await this.locks.resume(this.ticket);
    await lease.release();
    this.stopped.resolve();
    await Promise.all(this.running);
    await this.look('drained');
  }

  private async look(step: string): Promise<void> {
    await this.locks.using(step, () => steps.push(step));
    const isTaken = (await other.tryAcquire('long', { waitTime: 0 })) === null;
    // A load balancer looks while consumers wait for their work.
    const { status } = await this.locks.health();
    looks.push([step, this.byHand?.held, isTaken, status]);
  }
}

const locks = (isGlobal = true): DynamicModule[] => [
  LockModule.forRoot({ store, isGlobal }),
  LockModule.forRootAsync({ name: 'audit', isGlobal, useFactory: () => ({ store }) }),
];

@Module({ providers: [Consumer] })
class ConsumerModule {}

@Module({})
class LockFeature {}

const LAYOUTS: [string, () => DynamicModule['imports']][] = [
  ['first', () => [...locks(), ConsumerModule]],
  ['last', () => [ConsumerModule, ...locks()]],
  ['for one module', () => [{ module: ConsumerModule, imports: locks(false) }]],
  ['in a module that is imported first', () => [{ module: LockFeature, imports: locks() }, ConsumerModule]],
  ['in a module that is imported last', () => [ConsumerModule, { module: LockFeature, imports: locks() }]],
];

describe.each(LAYOUTS)('an application that imports LockModule %s', (_, imports) => {
  it('keeps the locks of work, and gives further ones, until its last hook has run (pitfall 78)', async () => {
    const app = await Test.createTestingModule({ imports: imports() ?? [] }).compile();
    await app.init();
    const consumer = app.get(Consumer, { strict: false });
    await consumer.start();
    await app.close();
    expect(steps).toEqual(['destroy', 'before', 'shutdown', 'long', 'drained']);
    expect(looks).toEqual([
      ['destroy', true, true, 'up'],
      ['before', true, true, 'down'],
      ['shutdown', true, true, 'down'],
      ['drained', true, false, 'down'],
    ]);
    expect(consumer.byHand?.held).toBe(false);
    expect(await other.tryAcquire('by hand')).toMatchObject({ held: true });
    for (const name of [undefined, 'audit']) {
      const service = app.get<LockService>(getLockServiceToken(name), { strict: false });
      await expect(service.acquire('late')).rejects.toMatchObject({ code: 'LOCK_CLOSED' });
    }
  });

  it('ends while a callback runs that no hook waits for, whose locks stay until its end', async () => {
    const app = await Test.createTestingModule({ imports: imports() ?? [] }).compile();
    await app.init();
    const [begun, gate] = [deferred(), deferred()];
    const service = app.get(LockService, { strict: false });
    const audit = app.get<LockService>(getLockServiceToken('audit'), { strict: false });
    const job = service.using('job', async () => {
      begun.resolve();
      await gate.promise;
      return await audit.using('another', () => 'done');
    });
    await begun.promise;
    Object.assign(app.get(Consumer, { strict: false }), { onApplicationShutdown: undefined });
    Object.assign(app.get(Consumer, { strict: false }), { look: () => Promise.resolve() });
    await app.close();
    expect(await other.tryAcquire('job')).toBeNull();
    await expect(service.acquire('late')).rejects.toMatchObject({ code: 'LOCK_CLOSED' });
    gate.resolve();
    expect(await job).toBe('done');
    await Promise.all([service.close(), audit.close()]);
    expect(await other.tryAcquire('job')).toMatchObject({ held: true });
  });
});

it('a LockModule that is loaded lazily hears of the shutdown (pitfall 87)', async () => {
  const app = await Test.createTestingModule({}).compile();
  await app.init();
  const loaded = await app
    .get(LazyModuleLoader)
    .load(() => ({ module: LockFeature, imports: [LockModule.forRoot({ store, isGlobal: false })] }));
  const service = loaded.get(LockService, { strict: false });
  await service.acquire('by hand');
  const [begun, gate] = [deferred(), deferred()];
  const job = service.using('job', async () => {
    begun.resolve();
    await gate.promise;
  });
  await begun.promise;
  await app.close();
  expect((await service.health()).status).toBe('down');
  expect([await store.inspect('by hand'), await other.tryAcquire('job')]).toEqual([null, null]);
  gate.resolve();
  await job;
  await service.close();
  await expect(service.acquire('late')).rejects.toMatchObject({ code: 'LOCK_CLOSED' });
});

it('a LockModule that is loaded after the last hook is refused', async () => {
  const app = await Test.createTestingModule({ imports: [LockModule.forRoot({ store })] }).compile();
  await app.init();
  const loader = app.get(LazyModuleLoader);
  await app.close();
  class Late {
    readonly field = 1;
  }
  const imports = [LockModule.forRoot({ store, name: 'late', isGlobal: false })];
  await expect(loader.load(() => ({ module: Late, imports }))).rejects.toMatchObject({ code: 'LOCK_CLOSED' });
});

it.each<[string, (service: LockService, work: (lease: Lease) => Promise<boolean>) => Promise<boolean>]>([
  ['a fixed lease', (service, work) => service.using('job', { leaseTime: 60_000 }, work)],
  ['a renewed lease', (service, work) => service.using('job', { leaseTime: 60_000, renew: true }, work)],
  [
    'an extended lease',
    (service, work) =>
      service.using('job', { leaseTime: 1_000 }, async (lease) => {
        await lease.extend(60_000);
        return await work(lease);
      }),
  ],
  [
    'a lease that begins in it after the last hook',
    (service, work) =>
      service.using('outer', async () => {
        await pass(1_500);
        return await service.using('job', { leaseTime: 60_000 }, work);
      }),
  ],
])('work under %s that is longer than those of the module keeps its lock until its end', async (_, begin) => {
  const app = await Test.createTestingModule({
    imports: [LockModule.forRoot({ store, leaseTime: 2_000 })],
  }).compile();
  await app.init();
  const service = app.get(LockService);
  const gate = deferred();
  const job = begin(service, async (lease) => {
    await gate.promise;
    return lease.held;
  });
  await until(() => service.leases().length > 0);
  await app.close();
  await pass(3_500);
  gate.resolve();
  expect(await job).toBe(true);
  await service.close();
  expect(await store.inspect('job')).toBeNull();
});

it.each<[string, (service: LockService, work: () => Promise<void>) => Promise<void>]>([
  ['has released its lock', (service, work) => service.using('job', (lease) => lease.release().then(work))],
  [
    'has lost its lock',
    (service, work) =>
      service.using('job', () => service.forceRelease('job').then(work)).catch(() => undefined),
  ],
  ['has a lock of another service', (_, work) => other.using('job', work)],
])(
  'a lease by hand that is left behind by a callback which %s does not keep the service open',
  async (_, begin) => {
    const service = new LockService({ store });
    const [begun, gate] = [deferred(), deferred()];
    const job = begin(service, async () => {
      await service.acquire('left');
      begun.resolve();
      await gate.promise;
    });
    await begun.promise;
    const closed = service.close().then(() => 'closed');
    await pass(100);
    expect(await store.inspect('left')).not.toBeNull();
    gate.resolve();
    await job;
    expect(await Promise.race([closed, pass(5_000, 'open')])).toBe('closed');
    expect(await store.inspect('left')).toBeNull();
  },
);

it('a service of the application itself keeps the lock of work that only a later hook ends', async () => {
  const [begun, gate] = [deferred(), deferred()];
  class Jobs implements OnApplicationShutdown {
    async onApplicationShutdown() {
      await pass(45_000);
      looks.push(await other.tryAcquire('job'));
      gate.resolve();
    }
  }
  @Module({ providers: [Jobs] })
  class JobsModule {}
  // The hooks of a module come before those of the modules that it imports.
  const app = await Test.createTestingModule({
    imports: [JobsModule],
    providers: [{ provide: LockService, useFactory: () => new LockService({ store }) }],
  }).compile();
  await app.init();
  const service = app.get(LockService);
  const byHand = await service.acquire('by hand');
  const job = service.using('job', async (lease) => {
    begun.resolve();
    await gate.promise;
    return await service.using('inner', () => lease.held);
  });
  await begun.promise;
  await app.close();
  expect([looks, byHand.held, await job]).toEqual([[null], false, true]);
  await service.close();
  expect(await store.inspect('job')).toBeNull();
  await expect(service.acquire('late')).rejects.toMatchObject({ code: 'LOCK_CLOSED' });
});

it.each<[string, (service: LockService, work: () => Promise<boolean>) => Promise<boolean>]>([
  ['has released its lock', (service, work) => service.using('job', (lease) => lease.release().then(work))],
  ['has a lock of another service', (_, work) => other.using('job', work)],
  [
    'works in a scope of its own',
    (service, work) => service.using('job', (lease) => service.runInScope(() => lease.release().then(work))),
  ],
])('close() in a callback that %s does not wait for this callback', async (_, begin) => {
  const service = new LockService({ store });
  const isKept = await begin(service, async () => {
    const left = await service.acquire('left');
    await service.close();
    return left.held;
  });
  await service.close();
  expect([isKept, await store.inspect('left')]).toEqual([true, null]);
});

it('close() in a callback under a lock of another service waits for other callbacks', async () => {
  const service = new LockService({ store });
  await other.using('shutdown', async () => {
    const job = service.using('job', () => pass(5_000, 'done'));
    await until(() => service.leases().length > 0);
    await service.close();
    expect(service.leases()).toEqual([]);
    expect(await job).toBe('done');
  });
});

it('a lock whose callback closes the application is kept, and the application does not wait for its end', async () => {
  const app = await Test.createTestingModule({ imports: locks() }).compile();
  await app.init();
  const service = app.get(LockService);
  await service.using('restart', async (lease) => {
    await app.close();
    expect([lease.held, await other.tryAcquire('restart')]).toEqual([true, null]);
  });
  await service.close();
  expect(await store.inspect('restart')).toBeNull();
});

it('close() in a callback does not wait for it under a lock of another service that closes with the application, too', async () => {
  const app = await Test.createTestingModule({ imports: locks() }).compile();
  await app.init();
  const begun = deferred();
  const closing = deferred();
  const job = app.get(LockService).using('job', async (lease) => {
    begun.resolve();
    await closing.promise;
    await app.get<LockService>(getLockServiceToken('audit')).close();
    return lease.held;
  });
  await begun.promise;
  await app.close();
  closing.resolve();
  expect(await job).toBe(true);
  await app.get(LockService).close();
  expect(await store.inspect('job')).toBeNull();
});

it('a term keeps its lock until its work ends, which a later hook does', async () => {
  const begun = deferred();
  @Injectable()
  class Feed implements OnApplicationShutdown {
    private readonly stopped = deferred();
    @OnLeader('feed', { leaseTime: 600 })
    async follow({ signal }: Term) {
      begun.resolve();
      await this.stopped.promise;
      // Longer than the lease that it had when it was told.
      await pass(700);
      expect([signal.aborted, await other.tryAcquire('feed')]).toEqual([true, null]);
      steps.push('ended');
    }
    onApplicationShutdown() {
      this.stopped.resolve();
    }
  }
  const app = await Test.createTestingModule({ imports: locks(), providers: [Feed] }).compile();
  await app.init();
  await begun.promise;
  await app.close();
  await app.get(LockService).close();
  expect(steps).toEqual(['ended']);
  expect(await other.tryAcquire('feed')).toMatchObject({ held: true });
});

it('the last hook waits a moment for the callbacks of a service that closes already', async () => {
  const app = await Test.createTestingModule({ imports: locks() }).compile();
  await app.init();
  const service = app.get(LockService);
  const begun = deferred();
  const job = service.using('job', async () => {
    begun.resolve();
    return await pass(700, 'done');
  });
  await begun.promise;
  const closing = service.close();
  await app.close();
  expect(await store.inspect('job')).toBeNull();
  expect(await job).toBe('done');
  await closing;
});

it('a closing service refuses calls at once that have only leases by hand around them, also of other services', async () => {
  const service = new LockService({ store });
  const gate = deferred();
  const job = service.using('job', () => gate.promise);
  const held = await other.acquire('taken');
  const codeOf = (request: Promise<unknown>) =>
    request.then(
      () => 'granted',
      (error: unknown) => (error as { code: string }).code,
    );
  const refused = service.runInScope(async () => {
    await service.acquire('by hand');
    return await Promise.all([
      codeOf(service.acquire('taken')),
      codeOf(service.using('taken', () => 1)),
      codeOf(service.using(['free', 'taken'], () => 1)),
    ]);
  });
  await until(async () => ((await store.inspect('taken'))?.queue.length ?? 0) > 0);
  const closing = service.close();
  const closed = ['LOCK_CLOSED', 'LOCK_CLOSED', 'LOCK_CLOSED'];
  expect(await Promise.race([refused, pass(5_000)])).toEqual(closed);
  const beside = other.runInScope(async () => {
    const byHand = await other.acquire('by hand of another');
    const answers = await Promise.all([
      codeOf(service.acquire('free')),
      codeOf(service.using('free', () => 1)),
      codeOf(service.once('free', { period: 1 }, () => 1)),
    ]);
    await byHand.release();
    return answers;
  });
  expect(await beside).toEqual(closed);
  await held.release();
  gate.resolve();
  await job;
  await closing;
});
