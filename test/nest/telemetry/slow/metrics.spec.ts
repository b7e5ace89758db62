import 'reflect-metadata';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type DynamicModule, Injectable, Module } from '@nestjs/common';
import type { TestingModule } from '@nestjs/testing';
import { tracingChannel } from 'node:diagnostics_channel';
import {
  DistributedLock,
  LockModule,
  LockService,
  MemoryLockStore,
  TRACING_CHANNELS,
} from '../../../../lib/index.js';
import type { LockTelemetryOptions } from '../../../../lib/otel/index.js';
import { booted, telemetryTo } from '../booted.js';
import { Sdk } from '../sdk.js';
import { until, useVirtualTime } from '../../../support/virtual-time.js';

useVirtualTime();

@Injectable()
class Orders {
  @DistributedLock('order:$<args[0]>')
  pay(id: number): Promise<number> {
    return Promise.resolve(id);
  }
}

let sdk: Sdk;
let store: MemoryLockStore;
let apps: TestingModule[];

const boot = async (options: LockTelemetryOptions = {}, locks = LockModule.forRoot({ store })) => {
  const app = await booted({ imports: [telemetryTo(sdk, options), locks], providers: [Orders] });
  apps.push(app);
  return app;
};

@Module({})
class Both {}

const both = (...imports: DynamicModule[]): DynamicModule => ({ module: Both, imports });

beforeEach(() => {
  sdk = new Sdk();
  store = new MemoryLockStore();
  apps = [];
});

afterEach(async () => {
  for (const app of apps) await app.close();
  await sdk.shutdown();
});

describe('the metrics of locks', () => {
  it('count calls by their outcome, and measure waits and holds in seconds', async () => {
    const locks = (await boot()).get(LockService);
    const first = await locks.acquire('a', { label: 'x' });
    const second = locks.acquire('a', { label: 'x' });
    await locks.tryAcquire('a', { label: 'y' });
    await first.release();
    await (await second).release();
    expect(await sdk.metric('lock.acquisitions')).toEqual(
      new Map([
        ['lock.kind=lock lock.label=x lock.outcome=granted', 1],
        ['lock.kind=lock lock.label=x lock.outcome=handed-off', 1],
        ['lock.kind=lock lock.label=y lock.outcome=busy', 1],
      ]),
    );
    const waits = await sdk.metric('lock.wait.duration');
    expect([...waits.keys()]).toEqual([...(await sdk.metric('lock.acquisitions')).keys()]);
    const holds = await sdk.metric('lock.hold.duration');
    expect([...holds]).toEqual([
      ['lock.kind=lock lock.label=x lock.outcome=released', expect.objectContaining({ count: 2 })],
    ]);
    expect((holds.values().next().value as { sum: number }).sum).toBeLessThan(5);
    expect(await sdk.metric('lock.handovers')).toEqual(
      new Map([['lock.handover=local lock.kind=lock lock.label=x', 1]]),
    );
  });

  it('tell losses by their reason, and fixed leases from renewed ones', async () => {
    const locks = (await boot()).get(LockService);
    const fixed = await locks.acquire('a', { leaseTime: 20 });
    await locks.acquire('b');
    await locks.forceRelease('b');
    await until(() => !fixed.held);
    const series = (reason: string, lease: string) =>
      `lock.kind=lock lock.label=lock lock.lease=${lease} lock.reason=${reason}`;
    expect(await sdk.metric('lock.lost')).toEqual(
      new Map([
        [series('deleted', 'renewed'), 1],
        [series('expired', 'fixed'), 1],
      ]),
    );
  });

  it('tell the headroom of each instance, which is 1 where nothing is renewed', async () => {
    const [one, other] = [{ leaseTime: 2_000 }, { name: 'other' }];
    const app = await boot(
      {},
      both(LockModule.forRoot({ store, ...one }), LockModule.forRoot({ store, ...other })),
    );
    const headroom = () => sdk.metric('lock.renewal.headroom');
    expect([...(await headroom())]).toEqual([
      ['', 1],
      ['lock.instance=other', 1],
    ]);
    const lease = await app.get(LockService).acquire('a');
    let least = 1;
    await until(async () => (least = (await headroom()).get('') as number) < 0.95);
    expect(least).toBeGreaterThan(0);
    expect((await headroom()).get('lock.instance=other')).toBe(1);
    await lease.release();
    expect((await headroom()).get('')).toBe(1);
  });

  it('have one series for a thousand names of a template', async () => {
    const orders = (await boot({ spans: false })).get(Orders);
    for (let id = 0; id < 1_000; id++) await orders.pay(id);
    expect([...(await sdk.metric('lock.acquisitions'))]).toEqual([
      ['lock.kind=lock lock.label=order:$<args[0]> lock.outcome=granted', 1_000],
    ]);
  });

  it('have at most 100 series for a thousand labels, which names were made of', async () => {
    const locks = (await boot({ spans: false })).get(LockService);
    const labels = Array.from({ length: 200 }, (_, id) => `order:${String(id)}`);
    for (const label of labels) await (await locks.tryAcquire(label, { label }))?.release();
    // As the service publishes them, which takes longer.
    const { client } = await firstContext(locks);
    for (let id = 201; id < 1_000; id++) publish(client, `order:${String(id)}`);

    const all = ['acquisitions', 'wait.duration', 'hold.duration', 'held', 'waiting'];
    for (const name of all) expect([name, (await sdk.metric(`lock.${name}`)).size]).toEqual([name, 100]);
    const counted = await sdk.metric('lock.acquisitions');
    expect(counted.get('lock.kind=lock lock.label=other lock.outcome=granted')).toBe(1_000 - 99);
    expect(new Set((await sdk.metric('lock.held')).values())).toEqual(new Set([0]));
  });
});

/** The id of a service, as its contexts have it. */
async function firstContext(locks: LockService): Promise<{ client: string }> {
  const lease = await locks.acquire('order:200', { label: 'order:200' });
  await lease.release();
  return { client: lease.owner.replace(/:\d+$/, '') };
}

function publish(client: string, label: string): void {
  for (const name of Object.values(TRACING_CHANNELS)) {
    const { start, asyncEnd } = tracingChannel(name);
    const context = { name: label, label, kind: 'lock', client };
    start.publish(context);
    const outcome = name === TRACING_CHANNELS.hold ? 'released' : 'granted';
    asyncEnd.publish(Object.assign(context, { outcome }));
  }
}
