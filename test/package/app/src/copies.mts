import 'reflect-metadata';
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { Inject, Injectable } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import * as esm from 'nestjs-distributed-lock';
import * as esmOtel from 'nestjs-distributed-lock/otel';
import * as esmTesting from 'nestjs-distributed-lock/testing';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';

// What happens when an application is ESM and a library in it is CommonJS: the package is there twice.
const require = createRequire(import.meta.url);
const cjs = require('nestjs-distributed-lock') as typeof esm;
const cjsTesting = require('nestjs-distributed-lock/testing') as typeof esmTesting;
const cjsOtel = require('nestjs-distributed-lock/otel') as typeof esmOtel;
assert.notEqual(esm.LockService, cjs.LockService);
assert.notEqual(esmOtel.LockTelemetryModule, cjsOtel.LockTelemetryModule);
assert.notEqual(esmTesting.passThroughLocks, cjsTesting.passThroughLocks);

// One token of a name.
assert.equal(esm.getLockServiceToken('reports'), cjs.getLockServiceToken('reports'));

// Guards agree on errors, and so does instanceof for all of them.
for (const [one, two] of [
  [esm, cjs],
  [cjs, esm],
] as const) {
  const timeout = new one.LockTimeoutError('a', 1);
  assert.ok(two.isLockTimeoutError(timeout) && two.isLockError(timeout) && !two.isLockLostError(timeout));
  assert.ok(timeout instanceof two.LockError);
}

// The module of either copy serves the decorators and constructors of both, under one name and under another.
for (const [here, there] of [
  [esm, cjs],
  [cjs, esm],
] as const) {
  @Injectable()
  class Library {
    constructor(
      @Inject(there.LockService) readonly byClass: esm.LockService,
      @there.InjectLockService('reports') readonly byName: esm.LockService,
    ) {}

    @there.DistributedLock('a')
    async lease(): Promise<esm.Lease | undefined> {
      // One scope: either copy knows what runs under a lock of the other.
      here.assertLocked('a');
      there.assertLocked('a');
      assert.equal(here.currentLease(), there.currentLease());
      return here.currentLease();
    }

    @there.DistributedLock('b', { instance: 'reports' })
    async named(): Promise<string | undefined> {
      return here.currentLease()?.name;
    }
  }
  const app = await NestFactory.createApplicationContext(
    {
      module: class {},
      imports: [
        here.LockModule.forRoot({ store: 'memory' }),
        here.LockModule.forRoot({ store: 'memory', name: 'reports' }),
      ],
      providers: [Library],
    },
    { logger: false },
  );
  const library = app.get(Library);
  const locks = app.get<esm.LockService>(here.getLockServiceToken());
  assert.ok(locks instanceof here.LockService);
  assert.equal(library.byClass, locks);
  for (const token of [
    esm.LockService,
    cjs.LockService,
    esm.getLockServiceToken(),
    cjs.getLockServiceToken(),
  ])
    assert.equal(app.get(token), locks);
  assert.notEqual(library.byName, locks);
  const lease = await library.lease();
  assert.equal(lease?.name, 'a');
  assert.equal(lease.held, false);
  assert.equal(await library.named(), 'b');

  // Locked here, busy there.
  await locks.using('a', async () => {
    const elsewhere = locks.runInScope(() => library.byClass.tryAcquire('a'));
    assert.equal(await elsewhere, null);
    assert.equal(library.byClass.getLock('a').isHeld(), true);
  });

  // A multi-lock over locks of both.
  const foreign = new there.LockService({ store: 'memory' });
  await locks.getMultiLock([locks.getLock('x'), foreign.getLock('y')]).using(async () => {
    assert.equal(await foreign.getLock('y').isLocked(), true);
  });
  await foreign.onApplicationShutdown();
  await app.close();

  // A test that overrides the service by the class, or the token, of its copy reaches the decorators of both.
  @Injectable()
  class Overridden {
    constructor(@Inject(there.LockService) readonly byClass: esm.LockService) {}

    @here.DistributedLock('a')
    async here(): Promise<string | undefined> {
      return here.currentLease()?.owner;
    }

    @there.DistributedLock('a')
    async there(): Promise<string | undefined> {
      return here.currentLease()?.owner;
    }
  }
  for (const token of [here.LockService, here.getLockServiceToken()]) {
    const double = new here.LockService({ store: 'memory' });
    const module = await Test.createTestingModule({
      imports: [here.LockModule.forRoot({ connection: 'redis://127.0.0.1:1', waitTime: 100 })],
      providers: [Overridden],
    })
      .overrideProvider(token)
      .useValue(double)
      .compile();
    const overridden = module.get(Overridden);
    assert.equal(overridden.byClass, double);
    const { owner } = await double.acquire('b');
    const id = owner.slice(0, owner.indexOf(':'));
    assert.ok((await overridden.here())?.startsWith(id));
    assert.ok((await overridden.there())?.startsWith(id));
    await module.close();
  }

  // A test that switches off by one copy reaches the decorators of the other.
  const restore = (here === esm ? esmTesting : cjsTesting).passThroughLocks();
  const made = new Library(locks, locks);
  assert.equal(await made.named(), undefined);
  restore();
  await assert.rejects(made.named(), here.isLockConfigError);
}

// Two applications in one process, each with its copy of the telemetry: each lock is measured once, by either copy.
{
  const spans = new InMemorySpanExporter();
  const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] });
  const open = (locks: typeof esm, ...otel: (typeof esmOtel)[]) =>
    NestFactory.createApplicationContext(
      {
        module: class {},
        imports: [
          locks.LockModule.forRoot({ store: 'memory' }),
          ...otel.map(({ LockTelemetryModule }) => LockTelemetryModule.forRoot({ tracerProvider })),
        ],
      },
      { logger: false, abortOnError: false },
    );
  const apps = [await open(esm, cjsOtel), await open(cjs, esmOtel)];
  for (const app of apps) await app.get(esm.LockService).using('a', () => undefined);
  assert.deepEqual(
    spans.getFinishedSpans().map(({ name }) => name),
    ['lock.acquire', 'lock.hold', 'lock.acquire', 'lock.hold'],
  );
  await assert.rejects(open(esm, esmOtel, cjsOtel), /LockTelemetryModule: is imported more than once/);
  for (const app of apps) await app.close();
}
