import 'reflect-metadata';
import assert from 'node:assert/strict';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { LockModule } from 'nestjs-distributed-lock';
import { LockTelemetryModule } from 'nestjs-distributed-lock/otel';
import { Orders } from './app.js';

const spans = new InMemorySpanExporter();
const metrics = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] });
const reader = new PeriodicExportingMetricReader({ exporter: metrics, exportIntervalMillis: 1_000_000 });
const meterProvider = new MeterProvider({ readers: [reader] });

@Module({
  imports: [
    LockModule.forRoot({ connection: process.env['REDIS_URL']! }),
    LockTelemetryModule.forRoot({ tracerProvider, meterProvider }),
  ],
  providers: [Orders],
})
class TracedModule {}

/** The values of all series of a metric. */
async function valuesOf(name: string): Promise<unknown[]> {
  metrics.reset();
  await meterProvider.forceFlush();
  return metrics
    .getMetrics()
    .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics))
    .filter(({ descriptor }) => descriptor.name === name)
    .flatMap(({ dataPoints }) => dataPoints.map(({ value }) => value));
}

/** Two payments of one order: a grant and a hand-off, each with its spans. */
async function main(): Promise<void> {
  const app = await NestFactory.createApplicationContext(TracedModule, { logger: false });
  const orders = app.get(Orders);
  await Promise.all([orders.pay('traced'), orders.pay('traced')]);
  const outcomes = spans
    .getFinishedSpans()
    .map(({ name, attributes }) => `${name} ${String(attributes['lock.outcome'])}`);
  assert.deepEqual(outcomes.sort(), [
    'lock.acquire granted',
    'lock.acquire handed-off',
    'lock.hold released',
    'lock.hold released',
  ]);
  const waited = spans
    .getFinishedSpans()
    .find(({ links, name }) => name === 'lock.acquire' && links.length > 0);
  assert.equal(waited?.attributes['lock.outcome'], 'handed-off');
  assert.deepEqual(await valuesOf('lock.acquisitions'), [1, 1]);
  assert.deepEqual([await valuesOf('lock.held'), await valuesOf('lock.waiting')], [[0], [0]]);
  await app.close();
}

main().catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
