export { LockModule } from './lock.module.js';
export { LockService, type LockName } from './lock.service.js';
export { getLockServiceToken, InjectLockService } from './nest/lock-service.token.js';
export {
  DistributedLock,
  type DistributedLockDecorator,
  type ObservableLockDecorator,
  type PromiseLockDecorator,
} from './nest/distributed-lock.decorator.js';
export { OnLeader, type OnLeaderDecorator } from './nest/election/on-leader.decorator.js';
export { OnlyLeader, type OnlyLeaderDecorator } from './nest/election/only-leader.decorator.js';
export type { LeaderOptions } from './nest/election/leader-method.js';
export {
  OncePer,
  type OnceKey,
  type OncePerDecorator,
  type OncePerOptions,
} from './nest/once-per.decorator.js';
export type { LockInterceptorOptions } from './nest/lock-interceptor.options.js';
export type { LockKey } from './nest/lock-key.js';
export { LockInterceptor } from './nest/lock.interceptor.js';
export { ApiLockResponses } from './nest/api-lock-responses.decorator.js';
export { LockExceptionFilter } from './nest/lock-exception.filter.js';
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
} from './lock.options.js';
export type { Duration } from './lock.duration.js';
export type { Lease, Lock } from './locks/lock.js';
export type { OnceOptions, OnceResult } from './locks/once.js';
export type { Election, ElectionOptions, Term } from './locks/election.js';
export type { ListOptions, LockPage, LockSummary } from './locks/lock-summary.js';
export type { Asker } from './lock.asker.js';
export type { DeadlockStep } from './lock.deadlock.js';
export type { LockEvent } from './lock.events.js';
export type { LockOrderStep } from './lock.order.js';
export {
  type AcquireOutcome,
  type LockAcquireContext,
  type LockHoldContext,
  type LockTraceContext,
  TRACING_CHANNELS,
} from './lock.tracing.js';
export type { LockHealth } from './lock.health.js';
export type { LockHolder, LockState, LockWaiter } from './lock.state.js';
export { MemoryLockStore } from './stores/memory/memory-lock-store.js';
export type { LockStore } from './port/lock-store.js';
export type {
  HealthStatus,
  NodeHealth,
  QuorumCharter,
  Persistence,
  ReplicaHealth,
  StoreWarning,
} from './port/store-health.js';
export {
  isLockAbortedError,
  isLockClosedError,
  isLockConfigError,
  isLockError,
  isLockKeyError,
  isLockKindMismatchError,
  isLockLostError,
  isLockTimeoutError,
  isLockUnavailableError,
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
} from './lock.errors.js';
