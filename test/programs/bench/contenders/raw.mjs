import { randomUUID } from 'node:crypto';
import { connect, disconnect } from './ioredis.mjs';

const RELEASE = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`;

/** The floor: what one writes by hand, with nobody told, nothing renewed and no way to wait. */
export async function open({ urls, ttl }) {
  const clients = await connect(urls);
  const [client] = clients;
  client.defineCommand('releaseRaw', { numberOfKeys: 1, lua: RELEASE });
  return {
    lock: async (name) => {
      const owner = randomUUID();
      if ((await client.set(name, owner, 'PX', ttl, 'NX')) === null) throw new Error('busy');
      return () => client.releaseRaw(name, owner);
    },
    close: () => disconnect(clients),
  };
}
