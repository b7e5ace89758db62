import type { Member as QuorumMember } from '../../../lib/stores/quorum/member.js';
import type { SimulatedServer, Topology } from './cast.js';
import { type Identity, MemoryServer } from './servers/memory-server.js';
import { RemoteStore } from './servers/remote-store.js';
import type { Actor } from './world/actor.js';

/** As createStore gives commands their time. */
const timeOf = (share: number, least: number): number => Math.max(least, Math.min(share, 2_000));

const memoryServer: Topology['server'] = (world, name, program, ahead) =>
  new MemoryServer(world, name, program, ahead);

function serverOf(servers: readonly SimulatedServer[], index: number): MemoryServer {
  const server = servers[index];
  if (server instanceof MemoryServer) return server;
  throw new Error('not a memory server');
}

/** One server with the memory store, which all processes reach over a network. */
const memory: Topology = {
  name: 'memory',
  queues: true,
  servers: 1,
  mayBeStruck: 1,
  forgives: false,
  faults: ['server killed, restarted empty', 'data lost', 'lock lost'],
  clocksApart: 1_000,
  server: memoryServer,
  store: (process, actor, [link], servers, { leaseTime }) =>
    new RemoteStore(actor, link!, serverOf(servers, 0), process, timeOf(leaseTime / 6, 100)),
};

/** Five servers of which two may be gone, and the quorum store as it is. */
const quorum: Topology = {
  name: 'quorum',
  queues: false,
  servers: 5,
  mayBeStruck: 2,
  forgives: true,
  faults: [
    'server killed, restarted empty',
    'server clock stepped',
    'majority of a hold killed, restarted empty',
  ],
  clocksApart: 200,
  server: memoryServer,
  store: (process, actor, links, servers, { leaseTime }) => {
    const time = timeOf(leaseTime / 20, 50);
    const members = links.map((link, index) =>
      memberOf(actor, new RemoteStore(actor, link, serverOf(servers, index), process, time)),
    );
    return new process.QuorumLockStore(members, leaseTime);
  },
};

function memberOf(actor: Actor, store: RemoteStore): QuorumMember {
  return {
    store: store,
    get node() {
      return store.node;
    },
    get generation() {
      return store.generation;
    },
    get isDown() {
      return store.isDown;
    },
    outage: (name) => store.outage(name),
    identify: async () => {
      const askedAt = actor.look();
      const { wall, uptime = 0, ...told } = await store.ask<Identity>('identify', undefined);
      return {
        ...told,
        uptime: uptime < 0 ? uptime : Math.max(0, uptime - 1_000),
        clock: { least: wall - actor.look(), most: wall - askedAt },
      };
    },
    note: (note, time) => store.ask('note', undefined, note, time),
  };
}

export const topologies: readonly Topology[] = [memory, quorum];
