export { describeLockStore, type StorePlace } from './describe-lock-store.js';
export { loseLock, makeLockBusy } from './lock-state.js';
export { LockTestingModule, type LockTestingOptions } from './lock-testing.module.js';
export { passThroughLocks } from '../nest/pass-through.js';
