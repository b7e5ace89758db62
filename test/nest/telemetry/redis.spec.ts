import 'reflect-metadata';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { context, propagation, trace } from '@opentelemetry/api';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { type Lease, LockModule, LockService } from '../../../lib/index.js';
import { LockTelemetryModule } from '../../../lib/otel/index.js';
import { until } from '../../scenarios/until.js';
import { RedisServer } from '../../support/redis-server.js';
import { idOf, linksOf, parentOf, Sdk } from './sdk.js';

const LEASE = 900;

let server: RedisServer;
let sdk: Sdk;
let app: TestingModule;
let locks: LockService;
/** Another process of the fleet, as Redis sees it. Measured by the only telemetry that there is. */
let other: LockService;

beforeAll(async () => {
  Sdk.useContext();
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  server = await RedisServer.start();
  sdk = new Sdk();
  const { tracerProvider, meterProvider } = sdk;
  const options = { connection: server.url, leaseTime: LEASE, waitTime: 60_000 };
  const module = await Test.createTestingModule({
    imports: [LockTelemetryModule.forRoot({ tracerProvider, meterProvider }), LockModule.forRoot(options)],
  }).compile();
  // Losses are what one of these tests is about.
  Logger.overrideLogger(false);
  app = await module.init();
  locks = app.get(LockService);
  other = new LockService(options);
});

afterAll(async () => {
  await other.close();
  await app.close();
  await sdk.shutdown();
  await server.stop();
  propagation.disable();
  Sdk.dropContext();
});

function traceparent(): string | undefined {
  const carrier: { traceparent?: string } = {};
  propagation.inject(context.active(), carrier);
  return carrier.traceparent;
}

/** In the trace of another service, which sends its context with the request. */
const asRequest = <T>(parent: string, run: () => Promise<T>): Promise<T> => {
  const extracted = propagation.extract(context.active(), { traceparent: parent });
  return context.with(extracted, run);
};

it('the context of a request is that of its wait, its lock and its work, whichever message wakes it', async () => {
  const ids = ['1', '2', '3'].map((digit) => `00-${digit.repeat(32)}-${digit.repeat(16)}-01`);
  const first = await other.acquire('order:1');
  const seen = ids.map((id) =>
    asRequest(id, () => locks.using('order:1', () => Promise.resolve([id, traceparent()]))),
  );
  await until(async () => (await other.inspect('order:1'))?.waiters.processes === 1);
  await first.release();
  expect(await Promise.all(seen)).toEqual(ids.map((id) => [id, id]));

  const ofTrace = (digit: string, name: string) =>
    sdk.spans(name).find((span) => span.spanContext().traceId === digit.repeat(32));
  const spans = ['1', '2', '3'].map((digit) => [ofTrace(digit, 'lock.acquire'), ofTrace(digit, 'lock.hold')]);
  expect(spans.map((pair) => pair.map(parentOf))).toEqual(
    ['1', '2', '3'].map((digit) => [digit.repeat(16), digit.repeat(16)]),
  );
  expect(spans.map(([, hold]) => hold?.attributes['lock.handover'])).toEqual(['fleet', 'local', 'local']);
  // Each waited for the hold before it: the first one for that of the other service, in this process.
  const before = sdk.spans('lock.hold').find(({ attributes }) => attributes['lock.owner'] === first.owner);
  expect(linksOf(spans[0]?.[0])).toEqual([idOf(before)]);
  expect(linksOf(spans[1]?.[0])).toEqual([idOf(spans[0]?.[1])]);
  expect(trace.getActiveSpan()).toBeUndefined();
});

it('the headroom falls below a third before a lock is lost whose renewals get no answer, and the loss is counted', async () => {
  const leases: Lease[] = [await locks.acquire('lost', { label: 'lost' })];
  // Of a length of its own, and with no renewals to be late.
  leases.push(await locks.acquire('fixed', { leaseTime: 60_000, label: 'fixed' }));
  expect((await sdk.metric('lock.renewal.headroom')).get('')).toBeGreaterThan(1 / 3);
  server.freeze();
  let least = 1;
  await until(async () => {
    least = Math.min(least, Number((await sdk.metric('lock.renewal.headroom')).get('')));
    return least < 1 / 3;
  });
  await until(async () => (await sdk.metric('lock.lost')).size > 0);
  expect(leases.map(({ held }) => held)).toEqual([false, true]);
  server.thaw();
  const series = 'lock.kind=lock lock.label=lost lock.lease=renewed lock.reason=unreachable';
  expect([...(await sdk.metric('lock.lost'))]).toEqual([[series, 1]]);
  await Promise.all(leases.map((lease) => lease.release()));
  expect(new Set((await sdk.metric('lock.held')).values())).toEqual(new Set([0]));
  expect((await sdk.metric('lock.renewal.headroom')).get('')).toBe(1);
});
