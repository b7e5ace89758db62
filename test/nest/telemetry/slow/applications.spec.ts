import 'reflect-metadata';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { type DynamicModule, Logger, Module } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import type { Meter, MeterProvider } from '@opentelemetry/api';
import { hasSubscribers } from 'node:diagnostics_channel';
import { LockModule, LockService, MemoryLockStore, TRACING_CHANNELS } from '../../../../lib/index.js';
import { LockTelemetryModule, type LockTelemetryOptions } from '../../../../lib/otel/index.js';
import { deferred } from '../../../doubles/deferred.js';
import { booted, telemetryTo } from '../booted.js';
import { Sdk } from '../sdk.js';
import { useVirtualTime } from '../../../support/virtual-time.js';

useVirtualTime();

let sdk: Sdk;
let store: MemoryLockStore;
let apps: TestingModule[];

const telemetry = (options?: LockTelemetryOptions) => telemetryTo(sdk, options);

const boot = async (
  options: LockTelemetryOptions = {},
  providers: object[] = [],
  imports: DynamicModule[] = [telemetry(options)],
) => {
  const app = await booted({
    imports: [...imports, LockModule.forRoot({ store })],
    providers: providers.map((provider, index) => ({ provide: `a${String(index)}`, useValue: provider })),
  });
  apps.push(app);
  return app;
};

const isSubscribed = () =>
  Object.values(TRACING_CHANNELS).some((name) => hasSubscribers(`tracing:${name}:start`));

const granted = async (of = sdk) =>
  [...(await of.metric('lock.acquisitions')).values()].reduce<number>((sum, count) => sum + Number(count), 0);

beforeEach(() => {
  sdk = new Sdk();
  store = new MemoryLockStore();
  apps = [];
});

afterEach(async () => {
  for (const app of apps) await app.close();
  await sdk.shutdown();
  expect(isSubscribed()).toBe(false);
});

describe('two applications in one process', () => {
  it('measure each service once where they share the SDK', async () => {
    const [one, two] = [await boot(), await boot()];
    await one.get(LockService).using('a', () => 1);
    await two.get(LockService).using('a', () => 1);
    expect(await granted()).toBe(2);
    expect(sdk.spans('lock.hold')).toHaveLength(2);
    expect([...(await sdk.metric('lock.renewal.headroom'))]).toEqual([['', 1]]);
  });

  it.each<[string, LockTelemetryOptions]>([
    ['the same options', {}],
    ['other options', { spans: false }],
  ])('are not two modules of one application, with %s', async (_, options) => {
    @Module({ imports: [telemetry(options)] })
    class Part {}
    const twice = Test.createTestingModule({ imports: [telemetry(), Part, LockModule.forRoot({ store })] });
    await expect((await twice.compile()).init()).rejects.toThrow(
      'LockTelemetryModule: is imported more than once; call forRoot once, in the root module',
    );
    expect(isSubscribed()).toBe(false);
  });
});

describe('the telemetry', () => {
  it('ends with its application, when all services have closed', async () => {
    const app = await boot();
    const lease = await app.get(LockService).acquire('a');
    expect(isSubscribed()).toBe(true);
    await app.close();
    expect(isSubscribed()).toBe(false);
    expect(lease.held).toBe(false);
    expect([...(await sdk.metric('lock.held')).values()]).toEqual([0]);
  });

  it('measures to the last what work in flight does while the application shuts down', async () => {
    const begun = deferred();
    const shutDown = deferred();
    const done = deferred();
    let hooks = 0;
    /** Of the two around the telemetry, one shuts down after it, and before the locks. */
    const neighbour = () => {
      const onApplicationShutdown = () => {
        if (++hooks < 2) return Promise.resolve();
        shutDown.resolve();
        return done.promise;
      };
      @Module({})
      class Neighbour {}
      return { module: Neighbour, providers: [{ provide: 'late', useValue: { onApplicationShutdown } }] };
    };
    const app = await boot({}, [], [neighbour(), telemetry(), neighbour()]);
    const locks = app.get(LockService);
    const work = locks.using('a', async () => {
      begun.resolve();
      await shutDown.promise;
      await locks.using('b', () => 1);
    });
    await begun.promise;
    const closed = app.close();
    await work;
    done.resolve();
    await closed;
    expect(await granted()).toBe(2);
    expect(sdk.spans('lock.hold').map(({ attributes }) => attributes['lock.outcome'])).toEqual([
      'released',
      'released',
    ]);
  });

  it.each<[string, LockTelemetryOptions]>([
    ['a tracer that throws', { tracerProvider: { getTracer: () => throwing() } }],
    ['a meter that throws', { meterProvider: { getMeter: () => throwing() } }],
    ['instruments that throw', { meterProvider: { getMeter: () => brokenMeter } }],
  ])('throws nothing into the application because of %s, and tells it once', async (_, options) => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockReturnValue(undefined);
    const app = await boot(options);
    const locks = app.get(LockService);
    await locks.using('a', () => locks.tryAcquire('b'));
    await app.close();
    expect(warn.mock.calls).toEqual([['The telemetry of locks misses measurements: out of order']]);
    warn.mockRestore();
  });

  it.each<[LockTelemetryOptions, string]>([
    [{ spans: 1 as unknown as boolean }, 'spans: must be true or false (found: 1)'],
    [{ meterProvider: {} as MeterProvider }, 'must be a provider of OpenTelemetry, with getMeter()'],
    [{ names: true } as LockTelemetryOptions, 'names: is not an option of LockTelemetryModule.forRoot'],
  ])('refuses %p', (options, message) => {
    expect(() => LockTelemetryModule.forRoot(options)).toThrow(message);
  });
});

function throwing(): never {
  throw new Error('out of order');
}

const broken = { add: throwing, record: throwing, addCallback: () => undefined, removeCallback: throwing };
const brokenMeter = {
  createHistogram: () => broken,
  createCounter: () => broken,
  createUpDownCounter: () => broken,
  createObservableGauge: () => broken,
} as unknown as Meter;
