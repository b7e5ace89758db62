import { createStore } from '../../support/store.js';
import { describeLockStore } from '../../../lib/testing/describe-lock-store.js';
import { RedisCluster } from '../../support/redis-cluster.js';
import { sideBySide } from './side-by-side.js';

/** A server without these commands is one from before Redis 7. */
const CLASSIC = ['--rename-command', 'SPUBLISH', '', '--rename-command', 'SSUBSCRIBE', ''];

const SETTINGS = { keyPrefix: 'lock:', leaseTime: 30_000 };

sideBySide(() => {
  describeLockStore('Redis Cluster', async () => {
    const cluster = await RedisCluster.start();
    return {
      open: () => createStore({ connection: { cluster: cluster.addresses } }, SETTINGS),
      close: () => cluster.stop(),
    };
  });

  describeLockStore('Redis Cluster without sharded messages', async () => {
    const cluster = await RedisCluster.start({ args: () => CLASSIC });
    return {
      open: () => createStore({ connection: { cluster: cluster.addresses } }, SETTINGS),
      close: () => cluster.stop(),
    };
  });
});
