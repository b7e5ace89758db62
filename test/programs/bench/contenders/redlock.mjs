import Redlock from 'redlock';
import { connect, disconnect } from './ioredis.mjs';

export async function open({ urls, ttl, ...settings }) {
  const clients = await connect(urls);
  const redlock = new Redlock(clients, settings);
  // Without a listener, each busy attempt would end the process.
  redlock.on('error', () => undefined);
  const lockAll = async (names) => {
    const lock = await redlock.acquire(names, ttl);
    return () => lock.release();
  };
  return {
    lock: (name) => lockAll([name]),
    lockAll,
    hold: (name) =>
      new Promise((resolve, reject) => {
        const ended = redlock.using([name], ttl, () => {
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
