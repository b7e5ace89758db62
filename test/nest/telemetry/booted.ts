import { Logger, type ModuleMetadata } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { LockModule, type MemoryLockStore } from '../../../lib/index.js';
import { LockTelemetryModule, type LockTelemetryOptions } from '../../../lib/otel/index.js';
import type { Sdk } from './sdk.js';

/** An application that logs nothing: losses are what some of these tests are about. */
export async function booted(metadata: ModuleMetadata): Promise<TestingModule> {
  const module = await Test.createTestingModule(metadata).compile();
  Logger.overrideLogger(false);
  return await module.init();
}

export const telemetryTo = ({ tracerProvider, meterProvider }: Sdk, options: LockTelemetryOptions = {}) =>
  LockTelemetryModule.forRoot({ tracerProvider, meterProvider, ...options });

/** Telemetry, and two services of one store, of which one has the name `other`. */
export const twoServices = (sdk: Sdk, store: MemoryLockStore, options?: LockTelemetryOptions) => [
  telemetryTo(sdk, options),
  LockModule.forRoot({ store }),
  LockModule.forRoot({ store, name: 'other' }),
];
