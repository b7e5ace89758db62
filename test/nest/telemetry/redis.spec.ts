import 'reflect-metadata';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { context, propagation, trace } from '@opentelemetry/api';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { LockModule, LockService } from '../../../lib/index.js';
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
