export type {
  AcquireAllReply,
  AcquireAllRequest,
  AcquireReply,
  AcquireRequest,
  HandOverReply,
  HoldState,
  LockStore,
  NextOwner,
  QueueRequest,
  QueueTerms,
  ReleaseReply,
  RememberRequest,
  ReleaseRequest,
  RenewRequest,
  StoredHold,
  StoredLock,
  StoreLabels,
  StorePeriods,
  StoreQueues,
  StoreWaits,
  Subscription,
  TransferReply,
  TransferRequest,
} from '../port/lock-store.js';
export type { LossMessage, QueueMessage, Rivals } from '../port/queue-messages.js';
export type {
  ConnectionChange,
  HealthDepth,
  HealthStatus,
  NodeHealth,
  Persistence,
  ReplicaHealth,
  StoreHealth,
  StoreWarning,
} from '../port/store-health.js';
export { RESERVED } from '../port/lock-store.js';
export { CLAIM, QUEUE_ENTRY_LIFE } from '../port/queue-messages.js';
