import { describeLockStore } from '../../../../lib/testing/describe-lock-store.js';
import { RedisCluster } from '../../../support/redis-cluster.js';
import { createStore } from '../../../support/store.js';

/** A server without these commands is one from before Redis 7. */
const CLASSIC = ['--rename-command', 'SPUBLISH', '', '--rename-command', 'SSUBSCRIBE', ''];

describeLockStore('Redis Cluster without sharded messages', async () => {
  const cluster = await RedisCluster.start({ args: () => CLASSIC });
  return {
    open: () =>
      createStore({ connection: { cluster: cluster.addresses } }, { keyPrefix: 'lock:', leaseTime: 30_000 }),
    close: () => cluster.stop(),
  };
});
