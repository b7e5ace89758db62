import { Redis, type RedisOptions } from 'ioredis';
import { Redis as Redis5 } from 'ioredis-5';
import { createStore } from '../../../support/store.js';
import { describeLockStore } from '../../../../lib/testing/describe-lock-store.js';
import { startRedis } from '../../../support/redis.js';
import { sideBySide } from '../side-by-side.js';

/** Whatever makes commands come late, twice, together, or under another name. */
const CARELESS: RedisOptions = {
  keyPrefix: 'app:',
  enableAutoPipelining: true,
  enableOfflineQueue: true,
  autoResendUnfulfilledCommands: true,
  maxRetriesPerRequest: null,
  stringNumbers: true,
};

const CLIENTS: [title: string, make: (url: string) => Redis][] = [
  // Another class to TypeScript, the same one to the store.
  ['ioredis 5 with its defaults', (url) => new Redis5(url) as unknown as Redis],
  ['careless ioredis 5', (url) => new Redis5(url, CARELESS as object) as unknown as Redis],
  [
    'careless ioredis 6, RESP2',
    (url) => new Redis(url, { ...CARELESS, protocol: 2, replyMapping: 'legacy' }),
  ],
  [
    'careless ioredis 6, RESP3',
    (url) => new Redis(url, { ...CARELESS, protocol: 3, replyMapping: 'legacy' }),
  ],
  ['ioredis 6, RESP3 with its replies', (url) => new Redis(url, { replyMapping: 'resp3' })],
];

sideBySide(() => {
  for (const [title, make] of CLIENTS) {
    describeLockStore(`single Redis server through ${title}`, async () => {
      const redis = await startRedis();
      const clients: Redis[] = [];
      return {
        open: () => {
          const client = make(redis.url);
          clients.push(client);
          return createStore({ connection: client }, { keyPrefix: 'lock:', leaseTime: 30_000 });
        },
        close: async () => {
          for (const client of clients) client.disconnect();
          await redis.stop();
        },
      };
    });
  }
});
