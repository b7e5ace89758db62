export { describeLockStore, type StorePlace } from './describe-lock-store.js';
