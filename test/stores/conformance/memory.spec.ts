import { describeLockStore } from '../../../lib/testing/describe-lock-store.js';
import { MemoryLockStore } from '../../../lib/index.js';
import { useVirtualTime } from '../../support/virtual-time.js';

useVirtualTime();

describeLockStore('memory', () => {
  const store = new MemoryLockStore();
  return Promise.resolve({ open: () => store, close: () => Promise.resolve() });
});
