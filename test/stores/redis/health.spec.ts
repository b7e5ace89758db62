import { beforeEach, describe, expect, it } from '@jest/globals';
import { filter, firstValueFrom } from 'rxjs';
import type { LockService } from '../../../lib/index.js';
import { TestEnvironment } from '../../support/test-environment.js';
import { until } from '../../scenarios/until.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { serverOfEach } from '../../support/test-servers.js';

/** ms: a command has two seconds then. */
const LEASE = 12_000;

describe('Health', () => {
  const environment = TestEnvironment.ofEach();
  const server = serverOfEach();
  let locks: LockService;

  beforeEach(async () => {
    locks = environment.service({ connection: server.url, leaseTime: LEASE });
  });

  const isUp = async () => (await locks.health()).status === 'up';

  it('is up while Redis answers, and counts locks and waiters', async () => {
    const node = { node: `127.0.0.1:${String(server.port)}`, status: 'up', error: undefined };
    const idle = await locks.health();
    expect(idle).toMatchObject({
      status: 'up',
      nodes: [node],
      warnings: [],
      held: 0,
      waiting: 0,
      renewalHeadroom: undefined,
      renewalStuck: false,
    });
    expect(idle.nodes[0]?.latency).toBeGreaterThan(0);

    const lease = await locks.acquire('a');
    const fixed = await locks.acquire('b', { leaseTime: 60_000 });
    const waiting = Promise.all([locks.acquire('a'), locks.acquire('a')]);
    const busy = await locks.health();
    expect(busy).toMatchObject({ status: 'up', held: 2, waiting: 2 });
    // A fixed lease is not renewed, so it has no say in this.
    expect(busy.renewalHeadroom).toBeGreaterThan(0);
    expect(busy.renewalHeadroom).toBeLessThan(LEASE);

    await lease.release();
    await fixed.release();
    expect(await locks.health()).toMatchObject({ held: 1, waiting: 1 });
    const closed = locks.close();
    await expect(waiting).rejects.toMatchObject({ code: 'LOCK_CLOSED' });
    await closed;
  });

  it.each([
    ['has crashed', () => server.kill(), () => server.restart()],
    [
      'is frozen',
      async () => {
        server.freeze();
      },
      async () => {
        server.thaw();
      },
    ],
  ])('is down when Redis %s, says so, and is up again afterwards', async (_, harm, heal) => {
    expect(await isUp()).toBe(true);
    await harm();
    const { status, nodes } = await locks.health();
    expect(status).toBe('down');
    expect(nodes).toEqual([
      {
        // On a busy machine the store as a whole has had no answer in time.
        node: expect.stringMatching(new RegExp(`^(127.0.0.1:${String(server.port)}|store)$`)),
        status: 'down',
        latency: undefined,
        error: expect.stringMatching(/./),
      },
    ]);
    await heal();
    await until(isUp);
  });

  it('of a server that is gone has the reason each time, also if messages came from there', async () => {
    const held = await locks.acquire('a');
    await locks.acquire('a', { waitTime: 50 }).catch(() => undefined);
    const isGone = firstValueFrom(locks.events$.pipe(filter(({ type }) => type === 'disconnected')));
    await server.kill();
    await isGone;
    const node = `127.0.0.1:${String(server.port)}`;
    for (let n = 0; n < 3; n++) {
      const { nodes } = await locks.health();
      expect(nodes).toMatchObject([{ node, status: 'down', error: expect.stringMatching(/^not connected/) }]);
    }
    void held.release();
  });

  it('is down while renewals do not come through, though Redis answers and takes locks', async () => {
    const lease = await locks.acquire('a');
    const { renewalHeadroom: most = 0 } = await locks.health();
    await server.client().call('ACL', 'SETUSER', 'default', 'resetkeys', '~*trial*');
    let headroom = most;
    // The key that health tries is still allowed. Before a renewal is due, and while there is time for another try, all is well.
    await until(async () => {
      const health = await locks.health();
      headroom = health.renewalHeadroom ?? NaN;
      expect(health.nodes[0]?.status).toBe('up');
      expect(health.status).toBe(health.renewalStuck ? 'down' : 'up');
      return health.renewalStuck;
    });
    expect(headroom).toBeLessThan(LEASE / 3);
    await server.client().call('ACL', 'SETUSER', 'default', '~*');
    await until(isUp);
    expect(lease.held).toBe(true);
    await lease.release();
  });
});

describe('The health of a node', () => {
  const environment = TestEnvironment.ofEach();
  const server = serverOfEach();

  const service = (connection = server.url) => environment.service({ connection, leaseTime: LEASE });
  const nodeOf = async (locks: LockService) => (await locks.health()).nodes[0]!;

  /** Has a message connection made, as whoever waits does. */
  const wait = async (locks: LockService) => {
    const lease = await locks.acquire('busy');
    await expect(locks.acquire('busy', { waitTime: 100 })).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
    await lease.release();
  };

  it('is what the server says of itself', async () => {
    const node = await nodeOf(service());
    const info = await server.client().info();
    const field = (name: string) => new RegExp(`^${name}:(.*?)\r?$`, 'm').exec(info)?.[1];
    expect(node).toMatchObject({
      role: 'master',
      version: field('valkey_version') ?? field('redis_version'),
      runId: field('run_id'),
      replicas: [],
      evictionPolicy: 'noeviction',
      persistence: {
        appendOnly: false,
        failing: false,
        lastSave: Number(field('rdb_last_save_time')) * 1_000,
      },
    });
    // Both read the same clock.
    expect(Math.abs(node.clockOffset ?? NaN)).toBeLessThan(1_000);
    expect(node.uptime).toBeGreaterThanOrEqual(0);
    expect(node.uptime).toBeLessThan(60_000);
  });

  it('lists its replicas, and how far they are behind', async () => {
    const replica = await environment.server({ args: ['--replicaof', '127.0.0.1', String(server.port)] });
    await server.client().config('SET', 'repl-diskless-sync-delay', '0');
    const locks = service();
    const replicas = async () => (await nodeOf(locks)).replicas ?? [];
    await until(async () => (await replicas())[0]?.online === true);
    await until(async () => (await replicas())[0]?.behind === 0);
    expect(await replicas()).toEqual([
      { node: `127.0.0.1:${String(replica.port)}`, online: true, lag: expect.any(Number), behind: 0 },
    ]);
    replica.freeze();
    await (await locks.acquire('a')).release();
    expect((await replicas())[0]?.behind).toBeGreaterThan(0);
    await until(async () => ((await replicas())[0]?.lag ?? 0) >= 2_000);
  });

  it('is degraded while messages do not arrive', async () => {
    const proxy = await TcpProxy.start(server.port);
    environment.add(() => proxy.stop());
    const locks = service(proxy.url);
    expect((await nodeOf(locks)).subscriber).toBeUndefined();
    await wait(locks);
    expect(await locks.health()).toMatchObject({ status: 'up', nodes: [{ subscriber: true }] });

    proxy.refuse(true);
    const subscribers = async () => String(await server.client().client('LIST', 'TYPE', 'PUBSUB'));
    const id = /\bid=(\d+)/.exec(await subscribers())?.[1];
    await server.client().client('KILL', 'ID', Number(id));
    await until(async () => (await nodeOf(locks)).subscriber === false);
    expect(await locks.health()).toMatchObject({
      status: 'degraded',
      nodes: [{ status: 'degraded', error: expect.stringContaining('poll') }],
    });

    proxy.refuse(false);
    await until(async () => (await locks.health()).status === 'up');
    expect((await nodeOf(locks)).subscriber).toBe(true);
  });

  it('is degraded for a user that may not subscribe', async () => {
    const allow = (...rules: string[]) => server.client().call('ACL', 'SETUSER', 'app', ...rules);
    await allow('on', '>word', '~*', '+@all', 'resetchannels');
    const locks = service(server.url.replace('//', '//app:word@'));
    // The release of the lock publishes, which needs the channel as well.
    await locks.acquire('busy');
    await expect(locks.acquire('busy', { waitTime: 100 })).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
    expect(await locks.health()).toMatchObject({ status: 'degraded', nodes: [{ subscriber: false }] });
    await allow('allchannels');
    await expect(locks.acquire('busy', { waitTime: 100 })).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
    expect(await locks.health()).toMatchObject({ status: 'up', nodes: [{ subscriber: true }] });
  });
});
