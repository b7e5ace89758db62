import { setTimeout as sleep } from 'node:timers/promises';
import { RedisServer } from '../../../support/redis-server.js';
import type { TcpProxy } from '../../../support/tcp-proxy.js';
import { type Fault, InTheWay } from '../faults/fault.js';
import { networkFaults } from '../faults/network.js';
import { LockCommands, residueOf } from './residue.js';
import type { Stage, Topology } from './topology.js';
import { Ways } from './ways.js';

const PREFIX = 'chaos:';
const NODES = 5;
/** With three of five gone there would be no lock at all. */
const MAY_BE_GONE = 2;

/** ms for which a fresh hold is looked out for: longer than any is held. */
const LOOKOUT = 10_000;

/** What happens to one of the nodes. */
interface Blow {
  readonly what: string;
  hit(node: number): unknown;
  mend(node: number): unknown;
}

/**
 * Waits for a lock that a majority has just granted, so that its holder renews it as late as possible.
 * @returns the nodes that have it
 */
async function freshlyHeld(servers: readonly RedisServer[], locks: readonly string[]): Promise<number[]> {
  const known = new Set<string>();
  for (const end = performance.now() + LOOKOUT; performance.now() < end;) {
    const first = known.size === 0;
    for (const lock of locks) {
      const owners = await Promise.all(
        servers.map(async (server) => (await server.client().hkeys(`${PREFIX}${lock}`))[0]),
      );
      for (const owner of new Set(owners.filter((one) => one !== undefined))) {
        const holding = owners.flatMap((one, index) => (one === owner ? [index] : []));
        if (holding.length <= servers.length / 2 || known.has(owner)) continue;
        known.add(owner);
        // What was there at the first look may be about to be renewed.
        if (!first) return holding;
      }
    }
    await sleep(5);
  }
  throw new InTheWay();
}

/** Five independent masters, of which two may be gone. Each process has a way of its own to each of them. */
export const quorum: Topology = {
  name: 'quorum',
  start: async (workers): Promise<Stage> => {
    const each = Array.from({ length: NODES });
    const servers = await Promise.all(each.map(() => RedisServer.start()));
    const ways = await Ways.start(servers, workers);
    const commands = new LockCommands(servers);
    const forWays = (act: (proxy: TcpProxy) => void) => (node: number) => {
      ways.to(node).forEach(act);
    };
    const blows: Blow[] = [
      {
        what: 'stopped',
        hit: (node) => servers[node]?.freeze(),
        mend: (node) => servers[node]?.thaw(),
      },
      {
        what: 'killed, restarted empty',
        hit: (node) => servers[node]?.kill(),
        mend: (node) => servers[node]?.restart(),
      },
      {
        what: 'slow',
        hit: forWays((proxy) => {
          proxy.replyDelay(400);
        }),
        mend: forWays((proxy) => {
          proxy.replyDelay(0);
        }),
      },
      {
        what: 'out of reach',
        hit: forWays((proxy) => {
          proxy.refuse(true);
          proxy.cut();
        }),
        mend: forWays((proxy) => {
          proxy.refuse(false);
        }),
      },
    ];
    const struck = new Set<number>();
    const strikes = (count: number, { what, hit, mend }: Blow): Fault => ({
      name: `${String(count)} of ${String(NODES)} ${what}`,
      group: 'quorum',
      severity: 'outage',
      lasts: [200, 2_000],
      strike: async ({ random }) => {
        const first = random.between(0, NODES - 1);
        const chosen = Array.from({ length: count }, (_, index) => (first + index) % NODES);
        if (struck.size + count > MAY_BE_GONE || chosen.some((node) => struck.has(node)))
          throw new InTheWay();
        for (const node of chosen) struck.add(node);
        await Promise.all(chosen.map(hit));
        return async () => {
          await Promise.all(chosen.map(mend));
          for (const node of chosen) struck.delete(node);
        };
      },
    });
    /**
     * Three of five forget a hold at once, while others contend for it: with their votes it would have two holders. There
     * is no lock for a lease.
     */
    const amnesia: Fault = {
      name: 'the majority of a fresh hold killed, restarted empty',
      group: 'quorum',
      severity: 'outage',
      lasts: [1_500, 1_600],
      strike: async ({ locks }) => {
        const holding = await freshlyHeld(servers, locks);
        if (struck.size > 0) throw new InTheWay();
        for (const node of servers.keys()) struck.add(node);
        const chosen = holding.slice(0, Math.floor(NODES / 2) + 1);
        await Promise.all(chosen.map((node) => servers[node]!.restart()));
        return () => {
          struck.clear();
        };
      },
    };
    return {
      optionsFor: (worker) => ({ nodes: ways.addresses(worker), keyPrefix: PREFIX }),
      faults: [
        ...[1, 2].flatMap((count) => blows.map((blow) => strikes(count, blow))),
        amnesia,
        ...networkFaults(ways.byWorker),
      ],
      // A node that has restarted does not vote for a lease.
      failover: 3_000,
      perDead: 0,
      queues: false,
      commands: async () => {
        const all = await commands.count();
        // A release makes every process race for all nodes, for there is none that could choose one.
        return all === undefined ? undefined : all / NODES / workers;
      },
      heal: () => {
        for (const server of servers) server.thaw();
        return Promise.resolve();
      },
      ping: () => Promise.all(servers.map((server) => server.client().ping())),
      residue: () => residueOf(servers.map((server) => server.client())),
      stop: async () => {
        await ways.stop();
        await Promise.all(servers.map((server) => server.stop()));
      },
    };
  },
};
