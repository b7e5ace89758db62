import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import { LockModule, LockService } from '../../../../dist/index.js';
import { LockTelemetryModule } from '../../../../dist/otel/index.js';
import { now } from '../harness/clock.mjs';
import { slices } from './slices.mjs';
import { withoutChannels } from './without-channels.mjs';

const LOOPS = 64;
const work = async () => undefined;
const acquire = (locks) => () => locks.using('order:7', work);

/**
 * µs of an acquisition with its release: in memory, so that nothing else is in the way, of a build without channels, of this
 * build while nothing listens, and with all spans and metrics; and on Redis, at its cheapest.
 */
export async function play({ client, params: { times } }) {
  const [without, unheard] = await withoutChannels(async (build) => {
    const services = [build, { LockService }].map((each) => new each.LockService({ store: 'memory' }));
    const measured = await slices(times, ...services.map(acquire));
    for (const service of services) await service.close();
    return measured;
  });
  return {
    without,
    unheard,
    heard: await heard(times / 10),
    onRedis: await onRedis(client.service, times / 10),
  };
}

async function heard(times) {
  const meterProvider = new MeterProvider({
    readers: [new PrometheusExporter({ preventServerStart: true })],
  });
  const tracerProvider = new BasicTracerProvider();
  class App {}
  Module({
    imports: [
      LockModule.forRoot({ store: 'memory' }),
      LockTelemetryModule.forRoot({ tracerProvider, meterProvider }),
    ],
  })(App);
  const app = await NestFactory.createApplicationContext(App, { logger: false });
  const [measured] = await slices(times, acquire(app.get(LockService)));
  await app.close();
  await meterProvider.shutdown();
  return measured;
}

/** Side by side: an acquisition alone mostly waits for the network, and the channels would seem to cost less. */
async function onRedis(locks, times) {
  const rounds = [];
  for (let done = 0; done < times; done += LOOPS * 10) {
    const began = now();
    await Promise.all(
      Array.from({ length: LOOPS }, async (_, loop) => {
        for (let time = 0; time < 10; time++) await locks.using(`order:${String(loop)}`, work);
      }),
    );
    rounds.push(((now() - began) * 1000) / (LOOPS * 10));
  }
  return rounds.slice(Math.ceil(rounds.length / 4));
}
