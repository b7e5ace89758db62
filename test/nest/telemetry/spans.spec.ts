import 'reflect-metadata';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import type { TestingModule } from '@nestjs/testing';
import { context, type Span, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { DistributedLock, getLockServiceToken, LockService, MemoryLockStore } from '../../../lib/index.js';
import type { LockTelemetryOptions } from '../../../lib/otel/index.js';
import { booted, twoServices } from './booted.js';
import { idOf, linksOf, parentOf, Sdk } from './sdk.js';
import { abortAfter, until, useVirtualTime } from '../../support/virtual-time.js';

useVirtualTime();

@Injectable()
class Orders {
  @DistributedLock('order:$<args[0]>')
  pay(id: number): Promise<string | undefined> {
    return Promise.resolve(id > 0 ? traceparent() : undefined);
  }
}

/** The active span, as it goes on to another service. */
function traceparent(): string | undefined {
  const carrier: { traceparent?: string } = {};
  const setter = { set: (to: object, key: string, value: string) => Object.assign(to, { [key]: value }) };
  new W3CTraceContextPropagator().inject(context.active(), carrier, setter);
  return carrier.traceparent;
}

let sdk: Sdk;
let store: MemoryLockStore;
let app: TestingModule;
let locks: LockService;
let other: LockService;

const boot = async (options: LockTelemetryOptions = {}) => {
  app = await booted({ imports: twoServices(sdk, store, options), providers: [Orders] });
  locks = app.get(LockService);
  other = app.get(getLockServiceToken('other'));
};

/** Runs in a span of its own, as a request does. */
const inSpan = <T>(name: string, run: (span: Span) => Promise<T>): Promise<T> =>
  sdk.tracer.startActiveSpan(name, (span) =>
    run(span).finally(() => {
      span.end();
    }),
  );

const waiting = (name: string) => until(async () => ((await locks.inspect(name))?.waiters.local ?? 0) > 0);

beforeAll(() => {
  Sdk.useContext();
});

beforeEach(() => {
  sdk = new Sdk();
  store = new MemoryLockStore();
});

afterEach(async () => {
  await app.close();
  await sdk.shutdown();
});

afterAll(() => {
  context.disable();
});

describe('the spans of a lock', () => {
  it('are children of the span of the caller, and the hold is linked to its acquisition', async () => {
    await boot();
    await inSpan('request', async () => {
      const lease = await locks.acquire('order:1', { label: 'order' });
      await lease.release();
    });
    const [acquire] = sdk.spans('lock.acquire');
    const [hold] = sdk.spans('lock.hold');
    const [request] = sdk.spans('request');
    expect([parentOf(acquire), parentOf(hold)]).toEqual([idOf(request), idOf(request)]);
    expect(linksOf(hold)).toEqual([idOf(acquire)]);
    expect([acquire?.kind, hold?.kind]).toEqual([SpanKind.INTERNAL, SpanKind.INTERNAL]);
    expect(acquire?.attributes).toEqual({
      'lock.label': 'order',
      'lock.kind': 'lock',
      'lock.outcome': 'granted',
      'lock.waited': expect.any(Number),
      'lock.attempts': 1,
      'lock.commands': 1,
      'lock.fencing_token': expect.any(Number),
    });
    expect(hold?.attributes).toEqual({
      'lock.label': 'order',
      'lock.kind': 'lock',
      'lock.owner': expect.any(String),
      'lock.fencing_token': acquire?.attributes['lock.fencing_token'],
      'lock.lease': 'renewed',
      'lock.outcome': 'released',
      'lock.held': expect.any(Number),
    });
    expect(acquire?.attributes['lock.waited']).toBeLessThan(1);
    // To the release, and not to the answer to it.
    const [seconds = NaN, nanoseconds = NaN] = hold?.duration ?? [];
    expect(seconds + nanoseconds / 1e9).toBeCloseTo(Number(hold?.attributes['lock.held']), 6);
    for (const { status } of [acquire!, hold!]) expect(status.code).toBe(SpanStatusCode.UNSET);
  });

  it('leave the span of the caller active, also after a wait and in the locked method', async () => {
    await boot();
    const first = await locks.acquire('order:1');
    const parents = inSpan('request', async (span) => {
      const { traceId, spanId } = span.spanContext();
      const expected = `00-${traceId}-${spanId}-01`;
      const lease = locks.acquire('order:1');
      await lease;
      expect(trace.getActiveSpan()).toBe(span);
      const after = traceparent();
      await (await lease).release();
      return [expected, after, await app.get(Orders).pay(1)];
    });
    await waiting('order:1');
    // Granted by code that runs in another trace.
    await inSpan('another', () => first.release());
    const [expected, ...seen] = await parents;
    expect(seen).toEqual([expected, expected]);
    const requests = sdk.spans('request').map(idOf);
    expect(sdk.spans('lock.acquire').map(parentOf)).toEqual([undefined, ...requests, ...requests]);
    expect(sdk.spans('lock.hold').map(parentOf)).toEqual([undefined, ...requests, ...requests]);
  });

  it('link a caller to the hold of this process that it waited for', async () => {
    await boot();
    const run = (service: LockService, name: string) =>
      inSpan(name, async () => {
        const lease = await service.acquire('a');
        await until(() => goOn.has(name));
        await lease.release();
      });
    const goOn = new Set<string>();
    const all = [run(locks, 'first')];
    await until(async () => (await locks.inspect('a')) !== null);
    all.push(run(locks, 'second'));
    await waiting('a');
    all.push(run(other, 'third'));
    await until(async () => (await locks.inspect('a'))?.waiters.processes === 1);
    await locks.tryAcquire('a', { waitTime: 5 });
    for (const name of ['first', 'second', 'third']) goOn.add(name);
    await Promise.all(all);

    const requestOf = (name: string) => idOf(sdk.spans(name)[0]);
    const of = (title: string, request: string) =>
      sdk.spans(title).find((span) => parentOf(span) === requestOf(request));
    const holds = ['first', 'second', 'third'].map((request) => of('lock.hold', request));
    const linked = ['first', 'second', 'third'].map((request) => linksOf(of('lock.acquire', request)));
    expect(linked[0]).toEqual([]);
    expect(linked[1]).toEqual([idOf(holds[0])]);
    // In another service, with a client of its own.
    expect([[idOf(holds[0])], [idOf(holds[1])]]).toContainEqual(linked[2]);
    expect(of('lock.acquire', 'second')?.attributes).toMatchObject({ 'lock.outcome': 'handed-off' });
    expect(holds.map((hold) => hold?.attributes['lock.handover'])).toEqual([undefined, 'local', 'fleet']);
    expect(of('lock.acquire', 'third')?.attributes).toMatchObject({ 'lock.instance': 'other' });
    const asked = sdk.spans('lock.acquire').find((span) => parentOf(span) === undefined);
    expect(linksOf(asked)).toEqual([idOf(holds[0])]);
  });

  it('have the status of an error where the caller gets one, without names', async () => {
    await boot();
    await other.acquire('secret:1');
    await locks.acquire('secret:1', { waitTime: 5 }).catch(() => undefined);
    await locks.tryAcquire('secret:1');
    await locks.acquire('secret:1', { signal: abortAfter(5) }).catch(() => undefined);
    const fixed = await locks.acquire('secret:2', { leaseTime: 30 });
    await until(() => !fixed.held);
    const lost = await locks.acquire('secret:3');
    await locks.forceRelease('secret:3');
    await lost.release();

    const ends = (title: string) =>
      sdk
        .spans(title)
        .map(({ attributes, status }) => [
          attributes['lock.outcome'],
          attributes['lock.reason'],
          attributes['error.type'],
          status.code,
        ]);
    expect(ends('lock.acquire').slice(1, 4)).toEqual([
      ['busy', 'timeout', 'LOCK_TIMEOUT', SpanStatusCode.ERROR],
      ['busy', 'timeout', undefined, SpanStatusCode.UNSET],
      ['aborted', undefined, undefined, SpanStatusCode.UNSET],
    ]);
    expect(ends('lock.hold')).toEqual([
      ['lost', 'expired', undefined, SpanStatusCode.UNSET],
      ['lost', 'deleted', 'LOCK_LOST', SpanStatusCode.ERROR],
    ]);
    const told = sdk
      .spans()
      .map(({ attributes, status, events, links }) => ({ attributes, status, events, links }));
    expect(JSON.stringify(told)).not.toContain('secret');
  });

  it('have names where they are asked for', async () => {
    await boot({ includeNames: true });
    const held = await other.acquire('order:1');
    await locks.acquire('order:1', { waitTime: 5 }).catch(() => undefined);
    await held.release();
    expect(sdk.spans().map(({ attributes }) => attributes['lock.name'])).toEqual(Array(3).fill('order:1'));
    expect([...(await sdk.metric('lock.acquisitions')).keys()].join()).not.toContain('order:1');
    expect(sdk.spans('lock.acquire')[1]?.status.message).toMatch(/^The lock "order:1" is busy/);
  });

  it('are one for a multi-lock that is asked for, and one for each lock that it holds', async () => {
    await boot();
    await inSpan('request', () =>
      locks.using(['a', 'b'], { label: 'pair' }, () => locks.using('a', () => 1)),
    );
    const [multi, nested] = sdk.spans('lock.acquire');
    expect(multi?.attributes).toMatchObject({ 'lock.kind': 'multi', 'lock.label': 'pair' });
    expect(nested?.attributes).toMatchObject({ 'lock.outcome': 're-entered', 'lock.commands': 0 });
    const holds = sdk.spans('lock.hold');
    expect(holds.map(linksOf)).toEqual([[idOf(multi)], [idOf(multi)]]);
    expect(holds.map(parentOf)).toEqual(sdk.spans('request').flatMap((span) => [idOf(span), idOf(span)]));
  });

  it('are not made where they are switched off', async () => {
    await boot({ spans: false });
    await locks.using('a', () => 1);
    expect(sdk.spans()).toEqual([]);
    expect((await sdk.metric('lock.acquisitions')).size).toBe(1);
  });
});
