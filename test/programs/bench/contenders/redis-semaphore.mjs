import { Mutex, RedlockMutex } from 'redis-semaphore';
import { connect, disconnect } from './ioredis.mjs';

export async function open({ urls, ttl, ...options }) {
  const clients = await connect(urls);
  const settings = { lockTimeout: ttl, ...options };
  const lock = async (name) => {
    const mutex =
      clients.length > 1 ? new RedlockMutex(clients, name, settings) : new Mutex(clients[0], name, settings);
    await mutex.acquire();
    return () => mutex.release();
  };
  return { lock, hold: lock, close: () => disconnect(clients) };
}
