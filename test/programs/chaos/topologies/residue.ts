import type { Redis } from 'ioredis';
import type { RedisServer } from '../../../support/redis-server.js';
import type { Residue } from '../history.js';

/** What the servers still have, without our own connections and those of servers and sentinels. */
export async function residueOf(clients: readonly Redis[]): Promise<Omit<Residue, 'hanging'>> {
  const each = await Promise.all(
    clients.map(async (client) => {
      const keys = await client.keys('*');
      const ttls = await Promise.all(keys.map(async (key) => ({ key, ttl: await client.pttl(key) })));
      const list = (await client.call('CLIENT', 'LIST')) as string;
      // Servers, sentinels, and what a server that has moved a slot keeps open for the next one.
      const connections = list
        .split('\n')
        .filter((line) => line !== '' && !/ flags=[^ ]*[SM]| name=sentinel-| cmd=restore/.test(line));
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

/** Counts what locks are asked with: scripts. */
export class LockCommands {
  private readonly pids: readonly (number | undefined)[];

  constructor(private readonly servers: readonly RedisServer[]) {
    this.pids = servers.map(({ pid }) => pid);
  }

  /** Of all servers; undefined when one has been restarted, which has forgotten. */
  async count(): Promise<number | undefined> {
    if (this.servers.some(({ pid }, index) => pid !== this.pids[index])) return undefined;
    const each = await Promise.all(this.servers.map((server) => server.commandCalls()));
    return each.reduce((sum, calls) => sum + (calls.evalsha ?? 0) + (calls.eval ?? 0), 0);
  }
}
