import { type DynamicModule, Module } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { assertTelemetryOptions, type LockTelemetryOptions } from './lock-telemetry.options.js';
import { LockTelemetry } from './lock-telemetry.js';

/**
 * Makes spans and metrics of OpenTelemetry from the locks of this application. Import it once, in the root module, and start
 * the SDK before the application. It needs `@opentelemetry/api`, an optional peer.
 *
 * Each LockService of the process is measured once, also if several applications run in it: by the telemetry of the
 * application that provides it, else by the telemetry that was started first.
 */
@Module({})
export class LockTelemetryModule {
  /** @throws LockConfigError when an option is wrong */
  static forRoot(options: LockTelemetryOptions = {}): DynamicModule {
    assertTelemetryOptions(options);
    const useFactory = (modules: ModulesContainer) => new LockTelemetry(options, modules);
    return {
      module: LockTelemetryModule,
      providers: [{ provide: LockTelemetry, inject: [ModulesContainer], useFactory }],
    };
  }
}
