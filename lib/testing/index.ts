export { describeLockStore, type StorePlace } from './describe-lock-store.js';
export { loseLock, makeLockBusy } from './busy-lock.js';
export { LockTestingModule, type LockTestingOptions } from './lock-testing.module.js';
export { passThroughLocks } from '../nest/decorator/pass-through.js';
