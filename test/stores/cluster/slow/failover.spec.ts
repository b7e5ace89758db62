import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Cluster } from 'ioredis';
import type { Lease, LockEvent, LockModuleOptions, LockService } from '../../../../lib/index.js';
import { TestEnvironment } from '../../../support/test-environment.js';
import { until } from '../../../scenarios/until.js';
import { RedisCluster } from '../../../support/redis-cluster.js';
import type { RedisServer } from '../../../support/redis-server.js';

/** ms: longer than a failover takes, also on a busy machine. */
const LEASE = 15_000;

const environment = new TestEnvironment();
let cluster: RedisCluster;

beforeEach(async () => {
  cluster = await RedisCluster.start();
});

afterEach(async () => {
  await environment.end();
  await cluster.stop();
});

function service(options: LockModuleOptions = {}): { locks: LockService; events: LockEvent[] } {
  const locks = environment.service({
    connection: { cluster: cluster.addresses },
    leaseTime: LEASE,
    ...options,
  });
  const events: LockEvent[] = [];
  locks.events$.subscribe((event) => events.push(event));
  return { locks, events };
}

/** So many names on one master. */
async function namesOn(master: RedisServer, count: number): Promise<string[]> {
  const names: string[] = [];
  for (let n = 0; names.length < count; n++) {
    const name = `failover:${String(n)}`;
    if ((await cluster.masterOf(await cluster.slotOf(`lock:${name}`))) === master) names.push(name);
  }
  return names;
}

const nameOf = ({ port }: RedisServer) => `127.0.0.1:${String(port)}`;

async function replaced(slot: number, dead: RedisServer): Promise<void> {
  // For a moment no node has the slot.
  await until(async () => (await cluster.masterOf(slot).catch(() => dead)) !== dead);
}

describe('One of three masters', () => {
  it('is killed: the locks on the others are renewed without a gap, its own are kept by its replica', async () => {
    const { locks, events } = service();
    const [victim, second, third] = (await cluster.masters()) as [RedisServer, RedisServer, RedisServer];
    const [own, others] = [
      await namesOn(victim, 10),
      [...(await namesOn(second, 10)), ...(await namesOn(third, 10))],
    ];
    const leases = await Promise.all([...own, ...others].map((name) => locks.acquire(name)));
    const slot = await cluster.slotOf(`lock:${own[0] ?? ''}`);
    await replicated(victim);
    await cluster.expectFailover();
    await victim.kill();
    await replaced(slot, victim);
    // Longer than the first lease of each.
    await sleep(LEASE);
    expect(leases.every(({ held }) => held)).toBe(true);
    expect(events.filter(({ type }) => type === 'lost')).toEqual([]);
    expect(events).toContainEqual(expect.objectContaining({ type: 'disconnected', node: nameOf(victim) }));
    for (const name of own) expect(await locks.inspect(name)).toMatchObject({ kind: 'lock' });
    await Promise.all(leases.map((lease) => lease.release()));
    expect(await Promise.all([...own, ...others].map((name) => locks.inspect(name)))).toEqual(
      [...own, ...others].map(() => null),
    );
  });

  it('is killed before its replica has heard of a lock: the holder is told, and no other process is', async () => {
    const { locks, events } = service();
    const [victim, other] = (await cluster.masters()) as [RedisServer, RedisServer];
    const [[lost = ''], [kept = '']] = [await namesOn(victim, 1), await namesOn(other, 1)];
    const replicas = cluster.servers.filter((server) => server !== victim);
    const slot = await cluster.slotOf(`lock:${lost}`);
    const keeps = await locks.acquire(kept);
    const replica = await replicaOf(victim, replicas);
    await cluster.expectFailover();
    replica.freeze();
    // It finds out when its master is gone, and has not read anything since.
    await victim.client().call('CLIENT', 'KILL', 'TYPE', 'REPLICA');
    const loses = await locks.acquire(lost);
    await victim.kill();
    replica.thaw();
    await replaced(slot, victim);
    await until(() => loses.signal.aborted);
    expect(loses.held).toBe(false);
    expect(keeps.held).toBe(true);
    expect(events.filter(({ type }) => type === 'lost')).toMatchObject([{ name: lost }]);
    const next = await locks.acquire(lost, { waitTime: 60_000 });
    expect(next.fencingToken).toBeGreaterThan(loses.fencingToken);
    await next.release();
    await keeps.release();
  });

  it.each(['plain', 'fair'])(
    'is killed: a waiter for a %s lock there gets it after the failover',
    async (kind) => {
      const [a, b] = [service().locks, service().locks];
      const [victim] = (await cluster.masters()) as [RedisServer];
      const [name = ''] = await namesOn(victim, 1);
      const slot = await cluster.slotOf(`lock:${name}`);
      const lockIn = (locks: LockService) =>
        kind === 'fair' ? locks.getFairLock(name) : locks.getLock(name);
      const lease = await lockIn(a).acquire();
      const inside = new Set<string>();
      const waiting = [a, b, b, a, b].map((locks) =>
        lockIn(locks).using({ waitTime: 60_000 }, async ({ owner }: Lease) => {
          expect([...inside]).toEqual([]);
          inside.add(owner);
          await sleep(20);
          inside.delete(owner);
        }),
      );
      await until(async () => waits(await a.inspect(name)));
      await cluster.expectFailover();
      await victim.kill();
      await replaced(slot, victim);
      if (lease.held) await lease.release();
      await Promise.all(waiting);
      expect(await a.inspect(name)).toBeNull();
    },
  );
});

describe('A process that does nothing but tell its health', () => {
  it('knows of a promotion that ended no connection, and warns of no replica', async () => {
    const { locks } = service();
    expect(await locks.health()).toMatchObject({ status: 'up' });
    const [former] = (await cluster.masters()) as [RedisServer];
    const promoted = await replicaOf(former, cluster.servers);
    await cluster.promote(promoted);
    await until(async () => (await cluster.masters()).includes(promoted));
    await cluster.settled();
    expect(await locks.health()).toMatchObject({ status: 'up', warnings: [] });
  });
});

it('A master that an idle client does not know of: the processes with their messages there are asked and counted', async () => {
  // A client with the defaults of ioredis looks for masters only when a command is refused.
  const client = environment.client(new Cluster(cluster.addresses));
  const { locks: asker } = service({ connection: client });
  const [former, other] = (await cluster.masters()) as [RedisServer, RedisServer];
  const [name = ''] = await namesOn(other, 1);
  await (await asker.acquire('known')).release();
  const promoted = await replicaOf(former, cluster.servers);
  await cluster.promote(promoted);
  await until(async () => (await cluster.masters()).includes(promoted));
  await cluster.settled();

  const leases: Lease[] = [];
  const processesAt = async (servers: readonly RedisServer[]) => {
    const heard = servers.map((server) => server.client().pubsub('CHANNELS', 'lock_queue__channel:*'));
    return (await Promise.all(heard)).flat().length;
  };
  // Each process has its messages at any one master.
  while ((await processesAt([promoted])) === 0) {
    leases.push(await service().locks.getReadWriteLock(name).read.acquire());
    // A holder receives messages once it has held for a second.
    await until(async () => (await processesAt(cluster.servers)) === leases.length);
  }
  expect(await asker.requestRelease(name)).toBe(leases.length);
  await until(() => leases.every(({ releaseRequested }) => releaseRequested.aborted));
  await Promise.all(leases.map((lease) => lease.release()));
});

/** Resolves when the replica of a master has all that the master has so far. */
async function replicated(master: RedisServer): Promise<void> {
  const replica = await replicaOf(master, cluster.servers);
  const offset = async (server: RedisServer) =>
    Number(/\r\nmaster_repl_offset:(\d+)/.exec(await server.client().info('replication'))?.[1]);
  const reached = await offset(master);
  await until(async () => (await offset(replica)) >= reached);
}

const waits = (state: Awaited<ReturnType<LockService['inspect']>>): boolean =>
  (state?.waiters.processes ?? 0) + (state?.queue.length ?? 0) > 0;

/** The replica that follows a master. */
async function replicaOf(master: RedisServer, servers: readonly RedisServer[]): Promise<RedisServer> {
  for (const server of servers) {
    const replication = await server.client().info('replication');
    if (replication.includes('role:slave') && replication.includes(`master_port:${String(master.port)}`)) {
      return server;
    }
  }
  throw new Error('The master has no replica');
}
