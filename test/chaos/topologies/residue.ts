import type { Redis } from 'ioredis';
import type { Residue } from '../history.js';

/** What the servers still have, ours and the server's own connections left out. */
export async function residueOf(clients: readonly Redis[]): Promise<Omit<Residue, 'hanging'>> {
  const each = await Promise.all(
    clients.map(async (client) => {
      const keys = await client.keys('*');
      const ttls = await Promise.all(keys.map(async (key) => ({ key, ttl: await client.pttl(key) })));
      const list = (await client.call('CLIENT', 'LIST')) as string;
      const connections = list.split('\n').filter((line) => line !== '' && !/ flags=[^ ]*[SM]/.test(line));
      return {
        // Expired between the two questions.
        keys: ttls.filter(({ ttl }) => ttl !== -2),
        channels: ((await client.call('PUBSUB', 'CHANNELS')) as string[]).filter((name) =>
          name.includes('lock'),
        ),
        clients: connections.length - 1,
      };
    }),
  );
  return {
    keys: each.flatMap(({ keys }) => keys),
    channels: each.flatMap(({ channels }) => channels),
    clients: each.reduce((sum, one) => sum + one.clients, 0),
  };
}

/** Scripts are what locks are asked with. */
export const lockCommands = (calls: Record<string, number>): number =>
  (calls.evalsha ?? 0) + (calls.eval ?? 0);
