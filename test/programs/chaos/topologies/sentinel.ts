import { setTimeout as sleep } from 'node:timers/promises';
import { inSync, roleOf } from '../../../support/replicas.js';
import type { RedisServer } from '../../../support/redis-server.js';
import { SentinelDeployment } from '../../../support/sentinel.js';
import type { Fault } from '../faults/fault.js';
import { networkFaults } from '../faults/network.js';
import { LockCommands, residueOf } from './residue.js';
import type { Stage, Topology } from './topology.js';
import { oneAtATime } from './turn.js';
import { Ways } from './ways.js';

const PREFIX = 'chaos:';

/** A master, two replicas, three sentinels. A failover may forget the last locks, unless a replica had to have them. */
const sentinel = (name: string, replicas: number): Topology => ({
  name,
  start: async (workers): Promise<Stage> => {
    const deployment = await SentinelDeployment.start();
    const { servers } = deployment;
    const ways = await Ways.start(servers, workers);
    const commands = new LockCommands(servers);
    const demoted = async (former: RedisServer) => {
      while ((await roleOf(former)) !== 'slave') await sleep(20);
      const master = await deployment.master();
      await inSync(master, deployment.replicasOf(master));
    };
    const word = replicas > 0 ? 'with' : 'without';
    const stopped: Fault = {
      name: `master stopped, failover ${word} WAIT`,
      group: 'Sentinel failover',
      severity: replicas > 0 ? 'outage' : 'loss',
      lasts: [0, 500],
      strike: async () => {
        const former = await deployment.master();
        former.freeze();
        await deployment.failover(former);
        return async () => {
          former.thaw();
          await demoted(former);
        };
      },
    };
    // The other replica would confirm what the former master still takes, and then forget it.
    const lives: Fault = {
      name: `failover while the master lives`,
      group: 'Sentinel failover',
      severity: 'loss',
      lasts: [0, 500],
      strike: async () => {
        const former = await deployment.master();
        await deployment.failover(former);
        return () => demoted(former);
      },
    };
    return {
      optionsFor: (worker) => ({
        connection: { ...deployment.connection, natMap: ways.natMap(worker) },
        keyPrefix: PREFIX,
        ...(replicas > 0 && { replication: { replicas } }),
      }),
      faults: [...oneAtATime([stopped, lives]), ...networkFaults(ways.byWorker)],
      failover: 5_000,
      perDead: 0,
      queues: true,
      confirmed: replicas > 0,
      commands: () => commands.count(),
      heal: async () => {
        for (const server of servers) server.thaw();
        await deployment.master();
      },
      // Where a grant waits for a replica, what the replica takes is part of the answer. Only a master can wait.
      ping: () =>
        Promise.all(
          servers.map(async (server) => {
            await server.client().ping();
            if (replicas > 0)
              await server
                .client()
                .wait(replicas, 1_000)
                .catch(() => undefined);
          }),
        ),
      residue: async () => residueOf([(await deployment.master()).client()]),
      stop: async () => {
        await ways.stop();
        await deployment.stop();
      },
    };
  },
});

export const sentinelAlone = sentinel('sentinel', 0);
export const sentinelConfirmed = sentinel('sentinel, replicas: 1', 1);
