import { createStore } from '../../support/store.js';
import { describeLockStore } from '../../../lib/testing/describe-lock-store.js';
import { RedisServer } from '../../support/redis-server.js';

describeLockStore(
  'quorum of three servers',
  async () => {
    const servers = await Promise.all([1, 2, 3].map(() => RedisServer.start()));
    const nodes = servers.map(({ url }) => url);
    return {
      open: () => createStore({ nodes }, { keyPrefix: 'lock:', leaseTime: 30_000 }),
      close: async () => {
        await Promise.all(servers.map((server) => server.stop()));
      },
    };
  },
  { queues: false },
);
