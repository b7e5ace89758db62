import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import { LockModule, LockService } from '../../../../dist/index.js';
import { LockTelemetryModule } from '../../../../dist/otel/index.js';
import { withAndWithoutChannels } from './builds.mjs';
import { sideBySide } from './side-by-side.mjs';
import { slices } from './slices.mjs';

const work = async () => undefined;
const acquire = (locks) => () => locks.using('order:7', work);

/**
 * µs of an acquisition with its release: in memory, so that nothing else is in the way, of a build without channels, of the same
 * build with them while nothing listens, and with all spans and metrics; and on Redis, at its cheapest.
 */
export async function play({ client, params: { times } }) {
  const [without, unheard] = await withAndWithoutChannels(async ({ withoutChannels, withChannels }) => {
    const services = [withoutChannels, withChannels].map(
      (build) => new build.LockService({ store: 'memory' }),
    );
    const measured = await slices(times, ...services.map(acquire));
    for (const service of services) await service.close();
    return measured;
  });
  return {
    without,
    unheard,
    heard: await heard(times / 10),
    onRedis: await sideBySide(times / 10, (loop) => client.service.using(`order:${String(loop)}`, work)),
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
