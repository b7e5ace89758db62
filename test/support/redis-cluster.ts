import { execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Cluster } from 'ioredis';
import { until } from '../scenarios/until.js';
import { RedisServer } from './redis-server.js';

/** ms until a node that does not answer is taken for dead: never in a busy moment of the machine… */
const NODE_TIMEOUT = 15_000;
/** …and soon while nodes get to know each other, which takes the longer the more patient they are… */
const AT_FIRST = 3_000;
/** …or where a test lets one die. */
const SOON = 1_000;
/** Only ends what hangs. */
const PATIENCE = 60_000;

export interface RedisClusterOptions {
  /** Further arguments of each server, given its port. */
  args?: (port: number) => string[];
}

/** Three masters with a replica each, made by redis-cli, whose nodes a test may freeze, kill and restart. */
export class RedisCluster {
  private assertions: Cluster | undefined;

  private turn: Promise<unknown> = Promise.resolve();
  private readonly frozen = new Set<RedisServer>();

  servers: RedisServer[] = [];
  private args: (port: number) => string[] = () => [];

  /** Without servers until {@link open}. */
  constructor(private readonly options: RedisClusterOptions = {}) {}

  static async start(options?: RedisClusterOptions): Promise<RedisCluster> {
    const cluster = new RedisCluster(options);
    await cluster.open();
    return cluster;
  }

  async open(): Promise<void> {
    const { args = () => [] } = this.options;
    this.assertions = undefined;
    const settings = {
      'cluster-enabled': 'yes',
      'cluster-node-timeout': String(AT_FIRST),
      'cluster-replica-no-failover': 'yes',
      'cluster-require-full-coverage': 'no',
      'cluster-allow-replica-migration': 'no',
      'repl-diskless-sync-delay': '0',
    };
    const fixed = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
    this.args = (port) => [...fixed, ...args(port)];
    this.servers = await Promise.all(Array.from({ length: 6 }, () => startNode(this.args)));
    try {
      const addresses = this.servers.map(({ port }) => `127.0.0.1:${String(port)}`);
      const create = ['--cluster', 'create', ...addresses, '--cluster-replicas', '1', '--cluster-yes'];
      await promisify(execFile)('redis-cli', create, { timeout: PATIENCE });
      await this.settled();
      await this.configure('cluster-node-timeout', NODE_TIMEOUT);
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  /** To begin with: all nodes, whatever their role. */
  get addresses(): { host: string; port: number }[] {
    return this.servers.map(({ port }) => ({ host: '127.0.0.1', port }));
  }

  /** For assertions: always the same client. */
  client(): Cluster {
    if (this.assertions === undefined) {
      this.assertions = new Cluster(this.addresses, { redisOptions: { disconnectTimeout: 0 } });
      this.assertions.on('error', () => undefined);
    }
    return this.assertions;
  }

  async slotOf(key: string): Promise<number> {
    return await this.any().client().cluster('KEYSLOT', key);
  }

  /** The node that has the slot, as a node sees it that runs. */
  async masterOf(slot: number): Promise<RedisServer> {
    const range = (await this.ranges()).find(([from, to]) => from <= slot && slot <= to);
    const server = this.servers.find(({ port }) => port === range?.[2][1]);
    if (server === undefined) throw new Error(`No node has slot ${String(slot)}`);
    return server;
  }

  /** Masters in the order of the servers. */
  async masters(): Promise<RedisServer[]> {
    const ports = new Set((await this.ranges()).map(([, , [, port]]) => port));
    return this.servers.filter(({ port }) => ports.has(port));
  }

  /** Starts to move a slot: what has gone is asked for at the new node, what is there is served by the old one. */
  async beginMove(slot: number, to: RedisServer): Promise<RedisServer> {
    const from = await this.masterOf(slot);
    const [source, target] = await Promise.all([from, to].map(idOf));
    await to.client().cluster('SETSLOT', slot, 'IMPORTING', source ?? '');
    await from.client().cluster('SETSLOT', slot, 'MIGRATING', target ?? '');
    return from;
  }

  /** Moves keys, all of the slot's by default. */
  async migrate(slot: number, from: RedisServer, to: RedisServer, keys?: string[]): Promise<void> {
    const moved = keys ?? (await from.client().cluster('GETKEYSINSLOT', slot, 1_000));
    if (moved.length === 0) return;
    await this.inTurn(() =>
      from.client().call('MIGRATE', '127.0.0.1', to.port, '', 0, 5_000, 'KEYS', ...moved),
    );
  }

  async endMove(slot: number, to: RedisServer): Promise<void> {
    const id = await idOf(to);
    await this.inTurn(async () => {
      // The new node first, so that the slot is never without one.
      for (const server of [to, ...(await this.masters()).filter((node) => node !== to)]) {
        await server.client().cluster('SETSLOT', slot, 'NODE', id);
      }
      await this.agreed();
    });
  }

  async moveSlot(slot: number, to: RedisServer): Promise<void> {
    const from = await this.beginMove(slot, to);
    await this.migrate(slot, from, to);
    await this.endMove(slot, to);
  }

  /** In one step, which Valkey has from 9.0 on: the servers send the keys themselves, and the slot goes over when all are there. */
  async moveAtOnce(slot: number, to: RedisServer): Promise<void> {
    const from = await this.masterOf(slot);
    const request = ['MIGRATESLOTS', 'SLOTSRANGE', slot, slot, 'NODE', await idOf(to)];
    await this.inTurn(async () => {
      await from.client().call('CLUSTER', ...request);
      const end = performance.now() + PATIENCE;
      while ((await this.masterOf(slot)) !== to) {
        if (performance.now() > end) throw new Error('The slot did not move');
        await sleep(5);
      }
      await this.agreed();
    });
  }

  /** From now on the replica of a master that does not answer takes its place soon. */
  async expectFailover(): Promise<void> {
    await this.configure('cluster-node-timeout', SOON);
    await this.configure('cluster-replica-no-failover', 'no');
  }

  /** Makes a replica the master by hand. On a busy machine the nodes may not agree in time; then it takes over alone. */
  async promote(replica: RedisServer): Promise<void> {
    const isMaster = async () => (await replica.client().role())[0] === 'master';
    await replica.client().cluster('FAILOVER');
    try {
      await until(isMaster, 10_000);
    } catch {
      await replica.client().cluster('FAILOVER', 'TAKEOVER');
      await until(isMaster);
    }
  }

  freeze(server: RedisServer): void {
    this.frozen.add(server);
    server.freeze();
  }

  thaw(server: RedisServer): void {
    this.frozen.delete(server);
    server.thaw();
  }

  /** One more, without slots. */
  async addMaster(): Promise<RedisServer> {
    const server = await startNode(this.args);
    await server.client().cluster('MEET', '127.0.0.1', this.any().port);
    this.servers.push(server);
    await this.settled();
    return server;
  }

  /** Waits until all nodes that run agree that all is well. */
  async settled(): Promise<void> {
    const end = performance.now() + PATIENCE;
    const known = `cluster_known_nodes:${String(this.servers.length)}`;
    for (;;) {
      const states = await Promise.all(this.running().map((server) => stateOf(server, known)));
      if (states.every(Boolean)) return;
      if (performance.now() > end) throw new Error('The cluster did not settle');
      await sleep(20);
    }
  }

  async stop(): Promise<void> {
    this.assertions?.disconnect();
    await Promise.all(this.servers.map((server) => server.stop()));
  }

  /**
   * Waits until all masters know of the last move. A node that takes a slot before that takes its number for the newest, and
   * two masters may end up naming each other as the one that has a slot.
   */
  private async agreed(): Promise<void> {
    const end = performance.now() + PATIENCE;
    for (;;) {
      const epochs = await Promise.all((await this.masters()).map(epochsOf));
      const isKnown = epochs.every(([current]) => current === epochs[0]?.[0]);
      const isUnique = new Set(epochs.map(([, own]) => own)).size === epochs.length;
      if (isKnown && isUnique) return;
      if (performance.now() > end) throw new Error('The masters did not agree on the moved slot');
      await sleep(5);
    }
  }

  /** Two nodes that send keys to each other at the same time wait for each other, and a cluster is made for one move. */
  private async inTurn(step: () => Promise<unknown>): Promise<void> {
    const done = this.turn.then(step);
    this.turn = done.catch(() => undefined);
    await done;
  }

  private async configure(setting: string, value: number | string): Promise<void> {
    await Promise.all(this.servers.map((server) => server.configure(setting, value)));
  }

  private running(): RedisServer[] {
    return this.servers.filter((server) => server.pid !== undefined && !this.frozen.has(server));
  }

  private async ranges(): Promise<[number, number, [string, number]][]> {
    return (await this.any().client().call('CLUSTER', 'SLOTS')) as [number, number, [string, number]][];
  }

  private any(): RedisServer {
    const [server] = this.running();
    if (server === undefined) throw new Error('No node is running');
    return server;
  }
}

/** The bus has the port 10,000 above, so both are below those that other servers and outgoing connections have. */
async function startNode(args: (port: number) => string[]): Promise<RedisServer> {
  for (;;) {
    const port = 7_000 + Math.floor(Math.random() * 3_000);
    try {
      return await RedisServer.start({ port, args: args(port) });
    } catch (error) {
      if (!(error instanceof Error && error.message.includes('Address already in use'))) throw error;
    }
  }
}

/** The newest number that a node knows, and its own. */
async function epochsOf(server: RedisServer): Promise<(string | undefined)[]> {
  const info = await server.client().cluster('INFO');
  return ['current', 'my'].map((which) => new RegExp(`cluster_${which}_epoch:(\\d+)`).exec(info)?.[1]);
}

const idOf = async (server: RedisServer): Promise<string> => await server.client().cluster('MYID');

async function stateOf(server: RedisServer, known: string): Promise<boolean> {
  const [state, replication] = await Promise.all([
    server.client().cluster('INFO'),
    server.client().info('replication'),
  ]);
  const linked = replication.includes('role:master') || replication.includes('master_link_status:up');
  return linked && state.includes('cluster_state:ok') && state.includes(known);
}
