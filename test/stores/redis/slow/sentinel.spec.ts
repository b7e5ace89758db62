import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { type Lock, type LockService } from '../../../../lib/index.js';
import { TestEnvironment } from '../../../support/test-environment.js';
import { until } from '../../../scenarios/until.js';
import type { RedisServer } from '../../../support/redis-server.js';
import { MASTER_ARGS, startReplica } from '../../../support/replicas.js';
import { SentinelDeployment } from '../../../support/sentinel.js';
import { TcpProxy } from '../../../support/tcp-proxy.js';
import type { HoldRecord } from '../../../support/worker.js';
import { lockKeys } from '../../../support/keys.js';
import { serverOfEach } from '../../../support/test-servers.js';

/** ms: longer than a failover takes, so that holders can be told the truth. */
const LEASE = 20_000;

interface HolderState {
  held: boolean;
  remainingTime: number;
  reason?: string;
}

describe('Sentinel: when the master', () => {
  const environment = new TestEnvironment();
  let deployment: SentinelDeployment;
  let master: RedisServer;

  beforeEach(async () => {
    deployment = await SentinelDeployment.start();
    master = await deployment.master();
  });

  afterEach(async () => {
    await environment.end();
    await deployment.stop();
  });

  /** Of the next master, by each sentinel. */
  const announcements = async () => {
    const witnesses = deployment.ports.map((port) => new Redis(port, { enableReadyCheck: false }));
    for (const witness of witnesses) environment.client(witness);
    await Promise.all(witnesses.map((witness) => witness.subscribe('+switch-master')));
    return witnesses.map((witness) => once(witness, 'message'));
  };

  /** A proxy before each sentinel, and the connection by way of them. */
  const waysToSentinels = async () => {
    const ways = await Promise.all(deployment.ports.map((port) => TcpProxy.start(port)));
    for (const way of ways) environment.add(() => way.stop());
    const sentinels = ways.map(({ port }) => ({ host: '127.0.0.1', port }));
    const natMap = Object.fromEntries(
      deployment.ports.map((port, index) => [`127.0.0.1:${String(port)}`, sentinels[index]!]),
    );
    return { ways, connection: { ...deployment.connection, sentinels, natMap } };
  };

  /** A user that the sentinels are not, and a client of it at the present master. */
  const applicationUser = async () => {
    const app = { username: 'app', password: 'word' };
    for (const server of deployment.servers) {
      await server.client().acl('SETUSER', 'app', 'on', '>word', '~*', '&*', '+@all');
    }
    const former = environment.client(new Redis(master.url, app));
    return { app, former };
  };

  const arrivesAt = async (server: RedisServer, locks: LockService) => {
    const lease = await locks.acquire('after');
    const arrived = await server.client().exists('lock:after');
    await lease.release();
    return arrived === 1;
  };

  const names = (count: number) => Array.from({ length: count }, (_, n) => `n${String(n)}`);

  it('is killed, 20 holders are told the truth, 50 waiters get through, and no process ends', async () => {
    const { connection: url } = deployment;
    const holder = await environment.worker({ url, service: { leaseTime: LEASE } });
    const crowds = await environment.workers(2, { url, service: { leaseTime: LEASE } });
    const acquire = (name: string) => holder.call<{ id: number; owner: string }>('acquire', name);
    const kept = await Promise.all(names(16).map(acquire));
    const waiting = names(50).map((_, n) =>
      crowds[n % 2]!.call<HoldRecord>('holdFor', `n${String(n % 20)}`, { waitTime: Infinity }, 1),
    );
    await detach(master, deployment.replicasOf(master));
    const gone = await Promise.all(['gone-1', 'gone-2', 'gone-3', 'gone-4'].map((name) => acquire(name)));
    const killed = performance.now();
    await master.kill();
    for (const replica of deployment.replicasOf(master)) replica.thaw();

    const next = await deployment.master(master);
    expect(await next.client().exists('lock:gone-1', 'lock:gone-2', 'lock:gone-3', 'lock:gone-4')).toBe(0);
    for (const { owner } of kept) expect(await ownersOf(next)).toContain(owner);

    const stateOf = ({ id }: { id: number }) => holder.call<HolderState>('state', id);
    await until(async () => (await Promise.all(gone.map(stateOf))).every(({ held }) => !held));
    for (const state of await Promise.all(gone.map(stateOf))) expect(state.reason).toBe('deleted');
    // Longer than the first lease: the new master has renewed it.
    await sleep(Math.max(0, LEASE + 500 - (performance.now() - killed)));
    for (const state of await Promise.all(kept.map(stateOf))) expect(state).toMatchObject({ held: true });

    await Promise.all(kept.map(({ id }) => holder.call('release', id)));
    expect(await Promise.all(waiting)).toHaveLength(50);
    // A worker that has met an unhandled rejection does not answer any more.
    for (const worker of [holder, ...crowds]) await worker.call('blockEventLoop', 1);
  });

  it('is killed and replicas: 1 was asked for, what was acquired until then is still held', async () => {
    const locks = environment.service({
      connection: deployment.connection,
      leaseTime: LEASE,
      replication: { replicas: 1, timeout: 1_000 },
    });
    await (await locks.acquire('warm')).release();
    const replicas = deployment.replicasOf(master);
    const [confirming, behind] = replicas;
    // Late, so that nothing is on a replica just by being quick.
    await detach(master, replicas);
    const acquiring = names(20).map((name) => locks.acquire(name));
    await sleep(300);
    confirming?.thaw();
    const leases = await Promise.all(acquiring);
    // A replica that answers but has less could be promoted: the sentinels go by what it said last.
    await master.kill();
    const next = await deployment.master(master);
    expect(next).toBe(confirming);
    behind?.thaw();
    const owners = await ownersOf(next);
    for (const { owner } of leases) expect(owners).toContain(owner);
    await sleep(LEASE / 2);
    for (const lease of leases) expect(lease.held).toBe(true);
    for (const lease of leases) await lease.release();
    expect((await ownersOf(next)).length).toBe(0);
  });

  it('is replaced while it lives on, its connections are given up at once', async () => {
    const { app, former } = await applicationUser();
    const connection = { ...deployment.connection, ...app };
    const locks = environment.service({ connection, leaseTime: LEASE });
    await (await locks.acquire('before')).release();
    // Cut off from the sentinels, but not from the application: nobody can tell it that it is none any more.
    await former.acl('SETUSER', 'default', '-@all');
    const next = await deployment.master(master);
    await until(() => arrivesAt(next, locks));
    expect((await former.role())[0]).toBe('master');
  });

  it('is replaced while it lives on and no connection watches, its connections are given up all the same', async () => {
    const { ways, connection: by } = await waysToSentinels();
    const { app, former } = await applicationUser();
    const connection = { ...by, ...app };
    const locks = environment.service({ connection, leaseTime: LEASE });
    await (await locks.acquire('before')).release();
    await sleep(300); // the connections that watch are made after the other one
    const announced = Promise.all(await announcements());
    for (const way of ways) {
      way.refuse(true);
      way.cut();
    }
    await former.acl('SETUSER', 'default', '-@all');
    const next = await deployment.master(master);
    // None of them announces it later.
    await announced;
    for (const way of ways) way.refuse(false);
    await until(() => arrivesAt(next, locks));
    expect((await former.role())[0]).toBe('master');
  });

  it('is watched by no connection, health says so until one is back', async () => {
    const { ways, connection } = await waysToSentinels();
    const locks = environment.service({ connection, leaseTime: LEASE });
    const reports = (status: string, error?: string) =>
      until(async () => {
        const health = await locks.health();
        return health.status === status && (health.nodes[0]?.error ?? '').includes(error ?? '');
      });
    await reports('up');
    for (const way of ways) {
      way.refuse(true);
      way.cut();
    }
    await reports('degraded', 'a failover would be missed');
    for (const way of ways) way.refuse(false);
    await reports('up');
  });
});

describe('A connection that leads to a demoted master', () => {
  const environment = TestEnvironment.ofEach();
  const former = serverOfEach({ args: MASTER_ARGS });
  let next: RedisServer;
  let proxy: TcpProxy;

  beforeEach(async () => {
    next = await startReplica(former);
    proxy = await TcpProxy.start(former.port);
    environment.add(() => proxy.stop());
    environment.add(() => next.stop());
  });

  /** As managed services do: the name leads to the new master, and open connections stay where they are. */
  const failOver = async () => {
    await next.client().replicaof('NO', 'ONE');
    await former.client().replicaof('127.0.0.1', next.port);
    proxy.leadTo(next.port);
  };

  const clientThatLeaves = () =>
    environment.client(
      new Redis(proxy.url, {
        reconnectOnError: ({ message }) => message.startsWith('READONLY'),
      }),
    );

  it('is given up, and the one that follows leads to the new one', async () => {
    const locks = environment.service({ connection: proxy.url, leaseTime: LEASE });
    const lease = await locks.acquire('key');
    await failOver();
    const other = await locks.acquire('other');
    expect(await ownersOf(next)).toEqual(expect.arrayContaining([lease.owner, other.owner]));
    await sleep(LEASE / 2);
    expect(lease.held).toBe(true);
    await Promise.all([lease.release(), other.release()]);
    await until(async () => (await ownersOf(next)).length === 0);
  });

  it.each([
    ['is', () => proxy.url],
    ["of the application's own, if it connects again on READONLY, is", () => clientThatLeaves()],
  ])('%s given up together with the one for messages: the process counts as alive', async (_, connect) => {
    const locks = environment.service({ connection: connect(), leaseTime: LEASE });
    const lease = await locks.acquire('key');
    const before = environment.service({ connection: former.url, leaseTime: LEASE });
    // The process of the holder receives messages once it has held a lock for a second.
    await until(async () => (await before.requestRelease('key')) === 1);
    await failOver();
    await (await locks.acquire('other', { waitTime: LEASE })).release();
    const after = environment.service({ connection: next.url, leaseTime: LEASE });
    await until(async () => (await after.requestRelease('key')) === 1);
    await lease.release();
  });

  it.each<[string, (locks: LockService) => Lock]>([
    ['a plain', (locks) => locks.getLock('key')],
    ['a fair', (locks) => locks.getFairLock('key')],
  ])(
    'with its messages only gets %s lock by no message that the master has undone, although the user may not count subscribers',
    async (_, lockOf) => {
      for (const server of [former, next])
        await server
          .client()
          .call('ACL', 'SETUSER', 'app', 'reset', 'on', '>word', '~*', '&*', '+@all', '-pubsub');
      const [locks, holder] = [proxy.port, former.port].map((port) =>
        environment.service({ connection: `redis://app:word@127.0.0.1:${String(port)}`, leaseTime: LEASE }),
      ) as [LockService, LockService];
      await (await locks.acquire('other')).release();
      // The replica passes the messages of its master on, which does not count their receivers.
      proxy.leadTo(next.port);
      const held = await lockOf(holder).acquire();
      const waiting = lockOf(locks).acquire();
      await until(async () => {
        const [queue] = await former.client().keys('lock:key~ndl:queue*');
        return queue !== undefined && (await former.client().zcard(queue)) === 1;
      });
      await held.release();
      const lease = await waiting;
      await expect(lockOf(holder).tryAcquire()).resolves.toBeNull();
      await lease.release();
    },
  );

  it('is given up where the replica has lost its master and refuses everything', async () => {
    const locks = environment.service({ connection: proxy.url, leaseTime: LEASE });
    await (await locks.acquire('key')).release();
    const gone = await environment.server();
    await next.client().replicaof('NO', 'ONE');
    await former.client().config('SET', 'replica-serve-stale-data', 'no');
    await former.client().replicaof('127.0.0.1', gone.port);
    await gone.stop();
    proxy.leadTo(next.port);
    await (await locks.acquire('key')).release();
  });
});

/** Stops the replicas, and keeps from them what comes now: the system would deliver it to them later. */
async function detach(master: RedisServer, replicas: readonly RedisServer[]): Promise<void> {
  for (const replica of replicas) replica.freeze();
  await master.client().call('CLIENT', 'KILL', 'TYPE', 'replica');
}

/** Of all locks on the server. */
async function ownersOf(server: RedisServer): Promise<string[]> {
  const keys = await lockKeys(server.client());
  return (await Promise.all(keys.map((key) => server.client().hkeys(key)))).flat();
}
