// A process for itself, because in a test's own much else is allocated, and a subscriber that throws ends it. Started by
// telemetry.spec.ts with --expose-gc, with the name of one of these.
import 'reflect-metadata';
import { subscribe } from 'node:diagnostics_channel';
import { Logger, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import { LockModule, LockService, TRACING_CHANNELS } from 'nestjs-distributed-lock';
import { LockTelemetryModule } from 'nestjs-distributed-lock/otel';

// What the probes print is their result.
Logger.overrideLogger(false);

const ROUND = 25_000;

/** The heap in use, in bytes, after each of four rounds of cycles, half of which wait for the one before. */
async function heap(...telemetry) {
  class App {}
  Module({ imports: [LockModule.forRoot({ store: 'memory' }), ...telemetry] })(App);
  const app = await NestFactory.createApplicationContext(App, { logger: false });
  const locks = app.get(LockService);
  const sizes = [];
  for (let round = 0; round < 4; round++) {
    for (let cycle = 0; cycle < ROUND; cycle += 2) {
      const name = [round, cycle].join('-');
      await Promise.all([locks.using(name, () => undefined), locks.using(name, () => undefined)]);
    }
    globalThis.gc();
    sizes.push(process.memoryUsage().heapUsed);
  }
  await app.close();
  return sizes;
}

const probes = {
  unheard: () => heap(),

  heard() {
    const reader = new PrometheusExporter({ preventServerStart: true });
    const meterProvider = new MeterProvider({ readers: [reader] });
    return heap(LockTelemetryModule.forRoot({ tracerProvider: new BasicTracerProvider(), meterProvider }));
  },

  /** Node reports what a subscriber throws as an uncaught exception, later. The caller and the lock are none the wiser. */
  async throwing() {
    const thrown = new Set();
    process.on('uncaughtException', (error) => thrown.add(error.message));
    for (const name of Object.values(TRACING_CHANNELS)) {
      for (const event of ['start', 'end', 'asyncStart', 'asyncEnd', 'error'])
        subscribe(`tracing:${name}:${event}`, () => {
          throw new Error(`${name} ${event}`);
        });
    }
    const locks = new LockService({ store: 'memory' });
    const answers = await Promise.all([1, 2].map((n) => locks.using('a', () => n)));
    const lost = await locks.acquire('b');
    await locks.forceRelease('b');
    await lost.release();
    const refused = await locks.acquire('c', { signal: AbortSignal.abort() }).catch(({ code }) => code);
    const left = locks.leases().length;
    await locks.close();
    await new Promise(setImmediate);
    return { answers, lost: lost.held, refused, left, thrown: thrown.size };
  },
};

console.log(JSON.stringify(await probes[process.argv[2]]()));
