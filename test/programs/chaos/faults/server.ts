import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { RedisServer } from '../../../support/redis-server.js';
import type { Fault, Strike } from './fault.js';

/** Further arguments of a server that these faults can strike. */
export const SERVER_ARGS = ['--busy-reply-threshold', '50'];

/** What happens to a server of its own accord or through others. */
export function serverFaults(
  server: RedisServer,
  { durable, prefix }: { durable: boolean; prefix: string },
): Fault[] {
  const admin = () => server.client();
  const setting = (name: string, key: string, value: string, normal: string): Fault => ({
    name,
    group: 'refusals',
    severity: 'outage',
    lasts: [100, 1_500],
    strike: async () => {
      await admin().config('SET', key, value);
      return () => admin().config('SET', key, normal);
    },
  });
  const once = (
    name: string,
    group: Fault['group'],
    severity: Fault['severity'],
    run: (strike: Strike) => Promise<unknown>,
  ): Fault => ({
    name,
    group,
    severity,
    lasts: [0, 0],
    strike: async (strike) => {
      await run(strike);
      return () => undefined;
    },
  });
  return [
    {
      name: 'server stopped',
      group: 'server',
      severity: 'outage',
      lasts: [100, 2_500],
      strike: async () => {
        server.freeze();
        return () => {
          server.thaw();
        };
      },
    },
    {
      name: durable ? 'server killed, restarted with its data' : 'server killed, restarted empty',
      group: 'server',
      severity: durable ? 'outage' : 'loss',
      lasts: [20, 1_500],
      strike: async () => {
        await server.kill();
        return () => server.restart();
      },
    },
    once('SCRIPT FLUSH', 'data lost', 'harmless', () => admin().script('FLUSH')),
    once('FLUSHALL', 'data lost', 'loss', () => admin().flushall()),
    once('DEL of a lock', 'data lost', 'loss', async ({ random, locks, concern }) => {
      concern.lock = random.pick(locks);
      await admin().del(prefix + concern.lock);
    }),
    {
      // As if their removal came late: what a process has told of its waits outlives them.
      name: 'notes of waits stay',
      group: 'messages',
      severity: 'harmless',
      lasts: [1_500, 3_000],
      strike: async () => {
        const notes = new Map<string, string>();
        const keep = async () => {
          for (const key of await admin().keys('*~ndl:waits:*'))
            notes.set(key, (await admin().get(key)) ?? '');
          for (const [key, note] of notes) await admin().set(key, note, 'PX', 1_000, 'NX');
        };
        const keeping = setInterval(() => void keep().catch(() => undefined), 25);
        return Promise.resolve(() => {
          clearInterval(keeping);
        });
      },
    },
    once('message connections killed', 'messages', 'outage', () =>
      admin().call('CLIENT', 'KILL', 'TYPE', 'pubsub'),
    ),
    setting('OOM', 'maxmemory', '1', '0'),
    {
      name: 'too many clients',
      group: 'refusals',
      severity: 'outage',
      lasts: [100, 1_500],
      strike: async () => {
        await admin().config('SET', 'maxclients', '1');
        await admin().call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
        return () => admin().config('SET', 'maxclients', '10000');
      },
    },
    {
      name: 'READONLY',
      group: 'refusals',
      severity: 'outage',
      lasts: [100, 1_500],
      strike: async () => {
        await admin().call('REPLICAOF', '127.0.0.1', '1');
        return () => admin().call('REPLICAOF', 'NO', 'ONE');
      },
    },
    {
      name: 'BUSY',
      group: 'refusals',
      severity: 'outage',
      lasts: [100, 1_500],
      strike: async () => {
        const loop = new Redis(server.url, {
          retryStrategy: () => null,
          maxRetriesPerRequest: 0,
          disconnectTimeout: 0,
        });
        loop.on('error', () => undefined);
        try {
          await loop.ping();
        } catch (error) {
          // Another fault is in the way, and nothing is going to be healed.
          loop.disconnect();
          throw error;
        }
        let running = true;
        const over = () => (running = false);
        loop.eval('while true do end', 0).then(over, over);
        return async () => {
          // It may not have begun yet, and it outlives its connection.
          while ((await killScript(server.url)) !== 'NOTBUSY' || running) await sleep(10);
          loop.disconnect();
        };
      },
    },
  ];
}

/** Over a connection of its own: one that asks first whether the server is ready is told that it is busy. */
async function killScript(url: string): Promise<'NOTBUSY' | undefined> {
  const client = new Redis(url, {
    enableReadyCheck: false,
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
    disconnectTimeout: 0,
  });
  client.on('error', () => undefined);
  try {
    await Promise.race([client.script('KILL'), sleep(200)]);
  } catch (error) {
    if (String(error).includes('NOTBUSY')) return 'NOTBUSY';
  } finally {
    client.disconnect();
  }
  return undefined;
}
