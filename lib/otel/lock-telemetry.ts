import { Logger, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import type { ModulesContainer } from '@nestjs/core';
import { type MeterProvider, metrics, trace } from '@opentelemetry/api';
import { LockConfigError } from '../api/errors.js';
import type { LockService } from '../module/lock-service.js';
import { type ServiceState, stateOf } from '../module/service-state.js';
import { onOneLine } from '../runtime/text.js';
import { LockMetrics } from './lock-metrics.js';
import { LockSpans } from './lock-spans.js';
import type { LockTelemetryOptions } from './lock-telemetry.options.js';
import type { Recorder } from './recorder.js';
import { Recording } from './recording.js';
import { add, isTelemetry, measures, observedBy, remember, remove, type Telemetry } from './telemetries.js';

/** The name of the tracer and of the meter. */
const SCOPE = 'nestjs-distributed-lock';

/** Measures the locks of an application while it runs. */
export class LockTelemetry implements Telemetry, OnModuleInit, OnApplicationShutdown {
  meterProvider: MeterProvider | undefined;
  private readonly logger = new Logger(LockTelemetry.name);
  private recording: Recording | undefined;
  private hasFailed = false;

  constructor(
    private readonly options: LockTelemetryOptions,
    private readonly modules: ModulesContainer,
  ) {
    remember(this);
  }

  onModuleInit(): void {
    if (this.isTwice()) {
      const rule = 'is imported more than once; call forRoot once, in the root module';
      throw new LockConfigError('LockTelemetryModule', rule);
    }
    const recorders = [this.made(() => this.makeSpans()), this.made(() => this.makeMetrics())];
    add(this);
    this.recording = new Recording(
      recorders.filter((recorder) => recorder !== undefined),
      (client) => measures(this, client),
      (error) => {
        this.failed(error);
      },
    );
  }

  /** The services of the application may close later. Their releases until then are measured. */
  onApplicationShutdown(): void {
    const left = new Set(this.provided());
    const endIfAlone = (): void => {
      if (left.size > 0) return;
      // What begins from now on is for another telemetry, however long the rest takes here.
      remove(this);
      this.recording?.end();
    };
    for (const service of [...left]) {
      service.events$.subscribe({
        complete: () => {
          left.delete(service);
          endIfAlone();
        },
      });
    }
    endIfAlone();
  }

  *services(): Generator<ServiceState> {
    for (const service of this.provided()) {
      const state = stateOf(service);
      if (state !== undefined) yield state;
    }
  }

  private *provided(): Generator<LockService> {
    for (const { providers } of this.modules.values()) {
      for (const { instance } of providers.values()) if (isService(instance)) yield instance;
    }
  }

  /** Known before any of them starts, so that a boot that fails leaves nothing behind. */
  private isTwice(): boolean {
    let found = 0;
    for (const { providers } of this.modules.values()) {
      for (const { instance } of providers.values()) if (isTelemetry(instance)) found++;
    }
    return found > 1;
  }

  private makeSpans(): Recorder | undefined {
    const { spans = true, includeNames = false, tracerProvider = trace.getTracerProvider() } = this.options;
    return spans ? new LockSpans(tracerProvider.getTracer(SCOPE), includeNames) : undefined;
  }

  private makeMetrics(): Recorder | undefined {
    const { metrics: wanted = true, meterProvider = metrics.getMeterProvider() } = this.options;
    if (!wanted) return undefined;
    this.meterProvider = meterProvider;
    return new LockMetrics(meterProvider.getMeter(SCOPE), () => observedBy(this));
  }

  private made(make: () => Recorder | undefined): Recorder | undefined {
    try {
      return make();
    } catch (error) {
      this.failed(error);
      return undefined;
    }
  }

  /** The application goes on, and so does what still works. */
  private failed(error: unknown): void {
    if (this.hasFailed) return;
    this.hasFailed = true;
    const reason = error instanceof Error ? error.message || error.name : String(error);
    this.logger.warn(`The telemetry of locks misses measurements: ${onOneLine(reason)}`);
  }
}

/** A double of the service has no state. Any other provider may be a proxy that throws when it is touched outside of a request. */
function isService(provided: unknown): provided is LockService {
  if (typeof provided !== 'object' || provided === null) return false;
  try {
    return stateOf(provided) !== undefined;
  } catch {
    return false;
  }
}
