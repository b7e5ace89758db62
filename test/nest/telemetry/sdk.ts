import { context, type SpanContext } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';

/** One series of a metric, by its attributes in the order of their names. */
export type Series = ReadonlyMap<string, unknown>;

/** The real SDK, which exports to memory. */
export class Sdk {
  private readonly exporter = new InMemorySpanExporter();
  private open = 0;
  readonly tracerProvider = new BasicTracerProvider({
    spanProcessors: [
      new SimpleSpanProcessor(this.exporter),
      {
        onStart: () => {
          this.open++;
        },
        onEnd: () => {
          this.open--;
        },
        forceFlush: () => Promise.resolve(),
        shutdown: () => Promise.resolve(),
      },
    ],
  });
  private readonly metrics = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  readonly meterProvider = new MeterProvider({
    readers: [new PeriodicExportingMetricReader({ exporter: this.metrics, exportIntervalMillis: 1_000_000 })],
  });

  /** Once per process: an application has one, too. */
  static useContext(): void {
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  }

  static dropContext(): void {
    context.disable();
  }

  get tracer() {
    return this.tracerProvider.getTracer('application');
  }

  /** The spans that have ended, of that name. */
  spans(name?: string): ReadableSpan[] {
    return this.exporter.getFinishedSpans().filter((span) => name === undefined || span.name === name);
  }

  /** How many spans have not ended yet. */
  get openSpans(): number {
    return this.open;
  }

  async metric(name: string): Promise<Series> {
    this.metrics.reset();
    await this.meterProvider.forceFlush();
    const all = this.metrics.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics);
    const found = all.flatMap(({ metrics }) => metrics).filter(({ descriptor }) => descriptor.name === name);
    return new Map(
      found
        .flatMap(({ dataPoints }) => [...dataPoints])
        .map(({ attributes, value }) => [
          Object.entries(attributes)
            .sort(([a], [b]) => (a < b ? -1 : 1))
            .map(([key, value]) => `${key}=${String(value)}`)
            .join(' '),
          value,
        ]),
    );
  }

  reset(): void {
    this.exporter.reset();
  }

  async shutdown(): Promise<void> {
    await this.tracerProvider.shutdown();
    await this.meterProvider.shutdown();
  }
}

export const parentOf = (span: ReadableSpan | undefined): string | undefined =>
  span?.parentSpanContext?.spanId;
export const linksOf = (span: ReadableSpan | undefined): string[] =>
  (span?.links ?? []).map(({ context }: { context: SpanContext }) => context.spanId);
export const idOf = (span: ReadableSpan | undefined): string | undefined => span?.spanContext().spanId;
