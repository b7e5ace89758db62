import { describeLockStore } from '../../../../lib/testing/describe-lock-store.js';
import { RedisCluster } from '../../../support/redis-cluster.js';
import { createStore } from '../../../support/store.js';

describeLockStore('Redis Cluster', async () => {
  const cluster = await RedisCluster.start();
  return {
    open: () =>
      createStore({ connection: { cluster: cluster.addresses } }, { keyPrefix: 'lock:', leaseTime: 30_000 }),
    close: () => cluster.stop(),
  };
});
