import { createClient } from 'redis';
import { lock } from 'simple-redis-mutex';

/** The one that is made for node-redis and not for ioredis. */
export async function open({ urls: [url], ttl, ...options }) {
  const client = await createClient({ url }).connect();
  return {
    lock: (name) => lock(client, name, { timeout: ttl, ...options }),
    close: () => client.close(),
  };
}
