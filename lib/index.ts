export { LockModule } from './module/lock-module.js';
export { LockService } from './module/lock-service.js';
export type { LockName } from './module/lock-by-name.js';
export { getLockServiceToken, InjectLockService } from './nest/service/lock-service.token.js';
export {
  DistributedLock,
  type DistributedLockDecorator,
  type ObservableLockDecorator,
  type PromiseLockDecorator,
} from './nest/decorator/distributed-lock.decorator.js';
export { OnLeader, type OnLeaderDecorator } from './nest/election/on-leader.decorator.js';
export { OnlyLeader, type OnlyLeaderDecorator } from './nest/election/only-leader.decorator.js';
export type { LeaderOptions } from './nest/election/leader-method.js';
export {
  OncePer,
  type OnceKey,
  type OncePerDecorator,
  type OncePerOptions,
} from './nest/once/once-per.decorator.js';
export type { LockInterceptorOptions } from './nest/interceptor/lock-interceptor.options.js';
export type { LockKey } from './nest/lock-key.js';
export { LockInterceptor } from './nest/interceptor/lock.interceptor.js';
export { ApiLockResponses } from './nest/filter/api-lock-responses.decorator.js';
export { LockExceptionFilter } from './nest/filter/lock-exception.filter.js';
export { assertLocked, currentLease } from './nest/current-lease.js';
export type {
  AcquireOptions,
  AnswerOptions,
  CallOptions,
  DistributedLockOptions,
  HandOverOptions,
  LockFactoryOptions,
  LockModuleAsyncOptions,
  LockModuleOptions,
  LockOptionsFactory,
  PresetOptions,
  ReasonOptions,
  RedisConnection,
  ReplicationOptions,
  UsingOptions,
} from './api/options.js';
export type { Duration } from './api/duration.js';
export type { Lease, Lock } from './api/lock.js';
export type { OnceOptions, OnceResult } from './locks/once/once.js';
export type { Election, ElectionOptions, Term } from './api/election.js';
export type { ListOptions, LockPage, LockSummary } from './api/lock-summary.js';
export type { Asker } from './api/asker.js';
export type { DeadlockStep } from './api/deadlock.js';
export type { LockEvent } from './api/events.js';
export type { LockOrderStep } from './api/lock-order.js';
export {
  type AcquireOutcome,
  type LockAcquireContext,
  type LockHoldContext,
  type LockTraceContext,
  TRACING_CHANNELS,
} from './api/tracing-channels.js';
export type { LockHealth } from './api/health.js';
export type { LockHolder, LockState, LockWaiter } from './api/lock-state.js';
export { MemoryLockStore } from './stores/memory/memory-lock-store.js';
export type { LockStore } from './store/lock-store.js';
export type {
  HealthStatus,
  NodeHealth,
  QuorumCharter,
  Persistence,
  ReplicaHealth,
  StoreWarning,
} from './store/store-health.js';
export {
  isLockError,
  LockAbortedError,
  LockClosedError,
  LockConfigError,
  LockError,
  LockKeyError,
  LockKindMismatchError,
  LockLostError,
  LockTimeoutError,
  LockUnavailableError,
  type LockErrorCode,
  type LossReason,
  type NodeOutcome,
} from './api/errors.js';
export {
  isLockAbortedError,
  isLockClosedError,
  isLockConfigError,
  isLockKeyError,
  isLockKindMismatchError,
  isLockLostError,
  isLockTimeoutError,
  isLockUnavailableError,
} from './api/error-guards.js';
