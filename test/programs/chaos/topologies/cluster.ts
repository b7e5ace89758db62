import { until } from '../../../scenarios/until.js';
import { RedisCluster } from '../../../support/redis-cluster.js';
import type { RedisServer } from '../../../support/redis-server.js';
import type { Fault } from '../faults/fault.js';
import { networkFaults } from '../faults/network.js';
import { LockCommands, residueOf } from './residue.js';
import type { Stage, Topology } from './topology.js';
import { oneAtATime } from './turn.js';
import { Ways } from './ways.js';

const PREFIX = 'chaos:';

/** Three masters with a replica each. */
export const cluster: Topology = {
  name: 'cluster',
  start: async (workers): Promise<Stage> => {
    const nodes = await RedisCluster.start();
    await nodes.expectFailover();
    const ways = await Ways.start(nodes.servers, workers);
    const commands = new LockCommands(nodes.servers);
    const replaced = async (master: RedisServer) => {
      await until(async () => !(await nodes.masters()).includes(master));
    };
    const faults: Fault[] = [
      {
        name: 'slot moved',
        group: 'cluster',
        severity: 'outage',
        lasts: [0, 0],
        strike: async ({ random, locks }) => {
          const slot = await nodes.slotOf(PREFIX + random.pick(locks));
          const from = await nodes.masterOf(slot);
          await nodes.moveSlot(slot, random.pick((await nodes.masters()).filter((node) => node !== from)));
          return () => undefined;
        },
      },
      {
        name: 'master of a slot stopped, its replica takes over',
        group: 'cluster',
        severity: 'loss',
        lasts: [0, 500],
        strike: async ({ random, locks }) => {
          const master = await nodes.masterOf(await nodes.slotOf(PREFIX + random.pick(locks)));
          nodes.freeze(master);
          await replaced(master);
          return async () => {
            nodes.thaw(master);
            await nodes.settled();
          };
        },
      },
      {
        name: 'master of a slot killed, its replica takes over',
        group: 'cluster',
        severity: 'loss',
        lasts: [0, 500],
        strike: async ({ random, locks }) => {
          const master = await nodes.masterOf(await nodes.slotOf(PREFIX + random.pick(locks)));
          await master.kill();
          await replaced(master);
          return async () => {
            await master.restart();
            await nodes.settled();
          };
        },
      },
    ];
    return {
      optionsFor: (worker) => ({
        connection: { cluster: ways.addresses(worker), options: { natMap: ways.natMap(worker) } },
        keyPrefix: PREFIX,
      }),
      faults: [...oneAtATime(faults), ...networkFaults(ways.byWorker)],
      failover: 6_000,
      // A node does not know who listens at another, so each has to let its claim run out.
      perDead: 1_000,
      queues: true,
      commands: () => commands.count(),
      heal: async () => {
        for (const server of nodes.servers) nodes.thaw(server);
        await nodes.settled();
      },
      ping: () => Promise.all(nodes.servers.map((server) => server.client().ping())),
      residue: async () => residueOf((await nodes.masters()).map((server) => server.client())),
      stop: async () => {
        await ways.stop();
        await nodes.stop();
      },
    };
  },
};
