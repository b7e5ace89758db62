import { RedisServer } from '../../../support/redis-server.js';
import { WallClock } from '../faults/clock.js';
import { networkFaults } from '../faults/network.js';
import { SERVER_ARGS, serverFaults } from '../faults/server.js';
import { LockCommands, residueOf } from './residue.js';
import type { Stage, Topology } from './topology.js';
import { Ways } from './ways.js';

const PREFIX = 'chaos:';

/** One server. Durable, it writes every command down before it answers, so that a crash forgets nothing. */
const single = (name: string, durable: boolean): Topology => ({
  name,
  start: async (workers): Promise<Stage> => {
    const clock = WallClock.make();
    const data = durable ? ['--appendonly', 'yes', '--appendfsync', 'always'] : [];
    const server = await RedisServer.start({ args: [...SERVER_ARGS, ...data], env: clock?.env ?? {} });
    const ways = await Ways.start([server], workers);
    const commands = new LockCommands([server]);
    return {
      optionsFor: (worker) => ({ connection: ways.addresses(worker)[0]!, keyPrefix: PREFIX }),
      faults: [
        ...serverFaults(server, { durable, prefix: PREFIX }),
        ...networkFaults(ways.byWorker),
        ...(clock?.faults(server.url, PREFIX) ?? []),
      ],
      failover: 1_000,
      perDead: 0,
      queues: true,
      commands: () => commands.count(),
      heal: async () => {
        server.thaw();
        clock?.step(0);
        const client = server.client();
        await client.config('SET', 'maxmemory', '0');
        await client.config('SET', 'maxclients', '10000');
        await client.call('REPLICAOF', 'NO', 'ONE');
      },
      ping: () => server.client().ping(),
      residue: () => residueOf([server.client()]),
      stop: async () => {
        await ways.stop();
        await server.stop();
        clock?.remove();
      },
    };
  },
});

export const singleServer = single('single', false);
export const durableServer = single('durable', true);
