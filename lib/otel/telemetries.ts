import type { MeterProvider } from '@opentelemetry/api';
import type { ServiceState } from '../module/service-state.js';

/** What measures the locks of one application. */
export interface Telemetry {
  /** Undefined if it has no metrics. */
  readonly meterProvider: MeterProvider | undefined;
  /** The LockServices that its application provides. */
  services(): Iterable<ServiceState>;
}

interface Shared {
  /** All that were made. */
  readonly made: WeakSet<object>;
  /** In the order of their start. */
  readonly started: Set<Telemetry>;
  /** What measures a LockService, by the id of its client. */
  readonly byClient: Map<string, Telemetry>;
  readonly labels: Set<string>;
}

/** Of all copies of this package in the process: one service is measured once. */
const TELEMETRIES = Symbol.for('nestjs-distributed-lock.telemetries');
const globals = globalThis as { [TELEMETRIES]?: Shared | undefined };
const shared: Shared = (globals[TELEMETRIES] ??= {
  made: new WeakSet(),
  started: new Set<Telemetry>(),
  byClient: new Map<string, Telemetry>(),
  labels: new Set<string>(),
});

/** How many values the attribute `lock.label` has at most in metrics, `other` included. */
const MOST_LABELS = 100;

/** Services may come and go, each with its own id. A forgotten one is found again. */
const MOST_CLIENTS = 1_000;

export const remember = (telemetry: Telemetry): unknown => shared.made.add(telemetry);

/** Does nothing to the value, which may be a proxy that throws wherever it is touched. */
export const isTelemetry = (value: unknown): boolean => shared.made.has(value as object);

export function add(telemetry: Telemetry): void {
  // Not when the last one ends: its open measurements end under the same label.
  if (shared.started.size === 0) shared.labels.clear();
  shared.started.add(telemetry);
  // It may provide services that another one has measured so far.
  shared.byClient.clear();
}

export function remove(telemetry: Telemetry): void {
  shared.started.delete(telemetry);
  shared.byClient.clear();
}

/** Whether this telemetry measures the service. */
export function measures(telemetry: Telemetry, client: string): boolean {
  let chosen = shared.byClient.get(client);
  if (chosen === undefined) {
    chosen = providerOf(client) ?? [...shared.started][0];
    if (chosen === undefined) return false;
    if (shared.byClient.size >= MOST_CLIENTS) shared.byClient.clear();
    shared.byClient.set(client, chosen);
  }
  return chosen === telemetry;
}

function providerOf(client: string): Telemetry | undefined {
  for (const telemetry of shared.started) {
    for (const service of telemetry.services()) if (service.clientId() === client) return telemetry;
  }
  return undefined;
}

/**
 * The services whose gauges this telemetry observes: of all that share its meter provider, one observes for all, because of
 * two observations of one series the last would count.
 */
export function* observedBy(telemetry: Telemetry): Generator<ServiceState> {
  const { meterProvider } = telemetry;
  const sharing = [...shared.started].filter((other) => other.meterProvider === meterProvider);
  if (sharing[0] !== telemetry) return;
  const seen = new Set<ServiceState>();
  for (const other of sharing) {
    for (const service of other.services()) {
      if (!seen.has(service)) yield service;
      seen.add(service);
    }
  }
}

/** A label as a metric has it: the first ones of the process, and `other` for the rest. */
export function metricLabelOf(label: string): string {
  const { labels } = shared;
  if (!labels.has(label)) {
    if (labels.size >= MOST_LABELS - 1) return 'other';
    labels.add(label);
  }
  return label;
}
