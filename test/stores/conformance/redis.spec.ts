import { createStore } from '../../support/store.js';
import { describeLockStore } from '../../../lib/testing/describe-lock-store.js';
import { startRedis } from '../../support/redis.js';

describeLockStore('single Redis server', async () => {
  const redis = await startRedis();
  return {
    open: () => createStore({ connection: redis.url }, { keyPrefix: 'lock:', leaseTime: 30_000 }),
    close: () => redis.stop(),
  };
});
