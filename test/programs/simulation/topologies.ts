import type { Member as QuorumMember, Report } from '../../../lib/stores/quorum/member.js';
import type { SimulatedServer, Topology } from './cast.js';
import { MemoryServer } from './servers/memory-server.js';
import { simulatedConnection } from './servers/redis/client.js';
import { Lua } from './servers/redis/lua.js';
import { RedisServer } from './servers/redis/redis-server.js';
import { RemoteStore } from './servers/remote-store.js';

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
  faults: ['server killed, restarted empty', 'data lost', 'lock lost', 'notes of waits stay'],
  clocksApart: 1_000,
  server: memoryServer,
  hasClients: false,
  confirmed: false,
  options: (process, actor, [link], servers, { leaseTime }) => {
    const time = timeOf(leaseTime / 6, 100);
    return { options: { store: new RemoteStore(actor, link!, serverOf(servers, 0), process, time) } };
  },
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
  hasClients: false,
  confirmed: false,
  options: (process, actor, all, servers, { leaseTime, sets = [] }, worker) => {
    const time = timeOf(leaseTime / 20, 50);
    const set = sets[worker % sets.length] ?? [...all.keys()];
    const members = set.map((index) => {
      const link = all[index]!;
      return memberOf(new RemoteStore(actor, link, serverOf(servers, index), process, time));
    });
    return { options: { store: new process.QuorumLockStore(members, leaseTime) } };
  },
};

function memberOf(store: RemoteStore): QuorumMember {
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
    run: () => store.ask<string>('run', undefined),
    charter: (change) => store.ask<Report>('charter.amend', undefined, change),
  };
}

const lua = await Lua.open();

const onRedis: Omit<Topology, 'name' | 'faults' | 'confirmed' | 'server' | 'options'> = {
  queues: true,
  servers: 1,
  mayBeStruck: 1,
  forgives: false,
  clocksApart: 1_000,
  hasClients: true,
};

/** The Redis store with its ioredis, and one server. Half of the processes give a client of their own, as ioredis makes it. */
const redis: Topology = {
  ...onRedis,
  name: 'redis',
  confirmed: false,
  faults: [
    'server killed, restarted empty',
    'server killed, restarted with its data',
    'scripts forgotten',
    'memory full',
    'data lost',
    'lock lost',
    'server clock stepped and returned',
  ],
  // Where the counter is lost and the clock has gone back, nothing is left that tokens could grow from.
  apart: ['server clock stepped and returned', 'server killed, restarted empty', 'data lost'],
  server: (world, name, _, ahead) => new RedisServer(world, name, lua, ahead, false),
  options: (process, actor, [link], [server]) => {
    const connection = simulatedConnection(process, actor, link!, server as RedisServer);
    if (actor.random.next() < 0.5) return { options: { connection } };
    const client = new process.Redis(connection);
    client.on('error', () => undefined);
    return { options: { connection: client }, close: () => client.quit() };
  },
};

/** The same with a replica that has to confirm each grant, and takes over without the last writes. */
const replicated: Topology = {
  ...onRedis,
  name: 'redis, replicas: 1',
  confirmed: true,
  faults: [
    'failover',
    'failover',
    'server killed, restarted with its data',
    'scripts forgotten',
    'memory full',
  ],
  server: (world, name, _, ahead) => new RedisServer(world, name, lua, ahead, true),
  options: (process, actor, [link], [server]) => ({
    options: {
      connection: simulatedConnection(process, actor, link!, server as RedisServer),
      replication: { replicas: 1 },
    },
  }),
};

export const topologies: readonly Topology[] = [memory, quorum, redis, replicated];
