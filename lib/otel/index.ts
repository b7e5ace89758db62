export { LockTelemetryModule } from './lock-telemetry.module.js';
export type { LockTelemetryOptions } from './lock-telemetry.options.js';
