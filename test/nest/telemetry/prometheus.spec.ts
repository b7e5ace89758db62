import 'reflect-metadata';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Controller, Get, type INestApplication, Logger, Module, Req, Res } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { spawnSync } from 'node:child_process';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { fileURLToPath } from 'node:url';
import { getLockServiceToken, LockModule, LockService, MemoryLockStore } from '../../../lib/index.js';
import { LockTelemetryModule } from '../../../lib/otel/index.js';
import { until } from '../../scenarios/until.js';
import {
  alertQueries,
  dashboardQueries,
  dashboardVariables,
  namedBy,
  seriesOf,
  type Series,
} from './prometheus.js';

const exporter = new PrometheusExporter({ preventServerStart: true });

@Controller('metrics')
class MetricsController {
  @Get()
  metrics(@Req() request: IncomingMessage, @Res() response: ServerResponse): void {
    exporter.getMetricsRequestHandler(request, response);
  }
}

const store = new MemoryLockStore();

@Module({
  imports: [
    LockModule.forRoot({ store }),
    LockModule.forRoot({ store, name: 'other' }),
    LockTelemetryModule.forRoot({ meterProvider: new MeterProvider({ readers: [exporter] }) }),
  ],
  controllers: [MetricsController],
})
class AppModule {}

let app: INestApplication;
let text: string;
let series: readonly Series[];

/** Something of each kind that is measured. */
async function useLocks(locks: LockService, other: LockService): Promise<void> {
  const label = 'order';
  const first = await locks.acquire('order:1', { label });
  const waiting = [locks.acquire('order:1', { label }), other.acquire('order:1', { label })] as const;
  await until(async () => (await other.inspect('order:1'))?.waiters.processes === 1);
  await locks.tryAcquire('order:1', { label });
  await locks.acquire('order:1', { label, waitTime: 5 }).catch(() => undefined);
  await first.release();
  await (await waiting[0]).release();
  await (await waiting[1]).release();
  await locks.acquire('order:2', { label });
  await locks.forceRelease('order:2');
}

beforeAll(async () => {
  const module = await Test.createTestingModule({ imports: [AppModule] }).compile();
  app = module.createNestApplication();
  Logger.overrideLogger(false);
  await app.listen(0, '127.0.0.1');
  await useLocks(app.get(LockService), app.get<LockService>(getLockServiceToken('other')));
  text = await (await fetch(`${await app.getUrl()}/metrics`)).text();
  series = seriesOf(text);
});

afterAll(async () => {
  await app.close();
  await exporter.shutdown();
});

/** Of a counter or gauge, and of the series that Prometheus is to have. */
const value = (name: string, ...labels: string[]) =>
  text
    .split('\n')
    .find((line) => line.startsWith(`${name}{`) && labels.every((label) => line.includes(label)))
    ?.split(' ')
    .at(-1);

/** What Prometheus adds to what it scrapes. */
const ADDED = ['instance', 'job'];

/** What a query names and the text does not have. */
const missingFrom = (query: string): string[] => {
  const { metrics, labels } = namedBy(query);
  const found = metrics.map((metric) => series.filter(({ name }) => metric.test(name)));
  const known = new Set([...ADDED, ...found.flat().flatMap((each) => each.labels)]);
  return [
    ...metrics.filter((_, index) => found[index]?.length === 0).map(String),
    ...labels.filter((label) => !known.has(label)),
    ...(metrics.length === 0 ? ['a metric'] : []),
  ];
};

it('the metrics of locks are scraped over HTTP', () => {
  expect(text).toContain('# TYPE lock_wait_duration histogram\n');
  expect(text).toContain('# UNIT lock_wait_duration s\n');
  expect(value('lock_acquisitions_total', 'order', 'handed-off')).toBe('1');
  expect(value('lock_acquisitions_total', 'order', 'busy')).toBe('2');
  expect(value('lock_lost_total', 'deleted', 'renewed')).toBe('1');
  expect(value('lock_handovers_total', 'fleet', 'other')).toBe('1');
  expect(value('lock_held', 'order')).toBe('0');
  expect(value('lock_renewal_headroom', 'other')).toBe('1');
  expect(text).not.toContain('order:');
});

it.each([...dashboardQueries(), ...alertQueries()])('%s: %s names what there is', (_, query) => {
  expect(missingFrom(query)).toEqual([]);
});

it('the dashboard lets choose from what there is', () => {
  expect(dashboardVariables()).toEqual(['label_values(lock_acquisitions_total, lock_label)']);
  expect(missingFrom('sum by (lock_label) (lock_acquisitions_total)')).toEqual([]);
});

it('alerts of losses, of waits and of renewals', () => {
  expect(alertQueries().map(([name]) => name)).toEqual(['LockLost', 'LockWaitsLong', 'LockRenewalsLate']);
  const [[, lost], [, waits], [, renewals]] = alertQueries() as [
    [string, string],
    [string, string],
    [string, string],
  ];
  expect(lost).toMatch(/increase\(.*> 0$/s);
  expect(waits).toMatch(/^histogram_quantile\(0\.99,/);
  expect(renewals).toMatch(/< 1\/3$/);
});

/** Prometheus has its own tests for rules; not every machine has its tool. */
const promtool = (...args: string[]) => spawnSync('promtool', args, { encoding: 'utf8' });
const hasTool = promtool('--version').status === 0;

(hasTool ? it : it.skip)('alerts tell what they say, where promtool is installed', () => {
  const { stdout, stderr } = promtool(
    'test',
    'rules',
    fileURLToPath(new URL('alerts.test.yml', import.meta.url)),
  );
  expect([stdout, stderr]).toEqual([expect.stringContaining('SUCCESS'), '']);
});

it.each([
  ['sum(rate(lock_waits_total[5m]))', ['/^lock_waits_total$/']],
  ['sum by (label) (lock_held{lock_kind="lock", name="a"})', ['label', 'name']],
  ['rate({__name__=~"lock_wait_durations?_(total)"}[5m])', ['/^(?:lock_wait_durations?_(total))$/']],
])('the check finds what is missing: %s', (query, missing) => {
  expect(missingFrom(query)).toEqual(missing);
});
