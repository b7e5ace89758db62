import { createLock, createRedlock, IoredisAdapter, LockManager } from 'redlock-universal';
import { connect, disconnect } from './ioredis.mjs';

export async function open({ urls, ttl, ...options }) {
  const clients = await connect(urls);
  const adapters = clients.map((client) => new IoredisAdapter(client));
  const [adapter] = adapters;
  const lockOf = (key) =>
    clients.length > 1
      ? createRedlock({ adapters, key, ttl, ...options })
      : createLock({ adapter, key, ttl, ...options });
  const manager = new LockManager({ nodes: [adapter], defaultTTL: ttl });
  return {
    lock: async (name) => {
      const lock = lockOf(name);
      const handle = await lock.acquire();
      return () => lock.release(handle);
    },
    lockAll: async (names) => {
      const handles = await manager.acquireBatch(names);
      return () => manager.releaseBatch(handles);
    },
    hold: (name) =>
      new Promise((resolve, reject) => {
        const ended = lockOf(name).using(() => {
          return new Promise((end) => {
            resolve(async () => {
              end();
              await ended;
            });
          });
        });
        ended.catch(reject);
      }),
    close: () => disconnect(clients),
  };
}
