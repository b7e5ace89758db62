import type { MeterProvider, TracerProvider } from '@opentelemetry/api';
import { assertKnownOptions } from '../client/validation.js';
import { LockConfigError } from '../api/errors.js';

/** What `LockTelemetryModule.forRoot` takes. */
export interface LockTelemetryOptions {
  /** Spans for acquisitions and holds. @default true */
  spans?: boolean;
  /** Metrics by label. @default true */
  metrics?: boolean;
  /**
   * Spans have the names of locks, and the messages of errors. A name may be that of a customer, so it is left out unless it is
   * asked for. Metrics never have names.
   * @default false
   */
  includeNames?: boolean;
  /** Makes the spans. @default the global provider of `@opentelemetry/api`, as it is when the modules are initialised */
  tracerProvider?: TracerProvider;
  /** Makes the metrics. @default the global provider of `@opentelemetry/api`, as it is when the modules are initialised */
  meterProvider?: MeterProvider;
}

const SWITCHES = ['spans', 'metrics', 'includeNames'] as const;
const PROVIDERS = [
  ['tracerProvider', 'getTracer'],
  ['meterProvider', 'getMeter'],
] as const;

/** @throws LockConfigError for an unknown option, and for a value of the wrong type */
export function assertTelemetryOptions(options: LockTelemetryOptions): void {
  const known = [...SWITCHES, ...PROVIDERS.map(([option]) => option)];
  assertKnownOptions(options, known, 'LockTelemetryModule.forRoot');
  for (const option of SWITCHES) {
    const value: unknown = options[option];
    if (value !== undefined && typeof value !== 'boolean')
      throw new LockConfigError(option, 'must be true or false', { value });
  }
  for (const [option, method] of PROVIDERS) {
    const value: unknown = options[option];
    if (value === undefined) continue;
    const given = (value as Partial<Record<string, unknown>> | null)?.[method];
    if (typeof given !== 'function')
      throw new LockConfigError(option, `must be a provider of OpenTelemetry, with ${method}()`, { value });
  }
}
