import { once } from 'node:events';
import { inspect } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { Cluster, Redis } from 'ioredis';
import { Cluster as OlderCluster } from 'ioredis-5';
import {
  LockUnavailableError,
  type LockEvent,
  type LockModuleOptions,
  type LockService,
  type RedisConnection,
} from '../../../../lib/index.js';
import { TestEnvironment } from '../../../support/test-environment.js';
import { until } from '../../../scenarios/until.js';
import { slotOf } from '../../../support/keys.js';
import { Worker } from '../../../support/worker.js';
import { clusterOfAll } from '../../../support/test-servers.js';

/** ms: longer than any call waits, so a caller that gets the lock was woken. */
const LONG = 300_000;
const PASSWORD = 'pass-4711-word';

type ClusterOptions = NonNullable<ConstructorParameters<typeof Cluster>[1]>;
type ClusterNode = ConstructorParameters<typeof Cluster>[0][number];

const environment = TestEnvironment.ofEach();
const cluster = clusterOfAll();

const service = (connection: RedisConnection, options: LockModuleOptions = {}): LockService =>
  environment.service({ connection, leaseTime: LONG, ...options });

const owned = (options: LockModuleOptions = {}) => service({ cluster: cluster.addresses }, options);

/** What the promise of exclusion needs, on all masters: a hand-over from each service to the other, of two kinds. */
async function expectHandOvers(a: LockService, b: LockService): Promise<void> {
  const names = Array.from({ length: 6 }, (_, n) => `hand-over:${String(n)}`);
  await Promise.all(
    names.map(async (name, n) => {
      const [from, to] = n % 2 === 0 ? [a, b] : [b, a];
      const lockIn = (locks: LockService) => (n < 3 ? locks.getLock(name) : locks.getFairLock(name));
      const lease = await lockIn(from).acquire();
      const waiting = lockIn(to).acquire();
      await until(async () => {
        const state = await to.inspect(name);
        return (n < 3 ? state?.waiters.processes : state?.queue.length) === 1;
      });
      await lease.release();
      const next = await waiting;
      expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
      await next.release();
      await until(async () => (await to.inspect(name)) === null);
    }),
  );
}

describe("The user's own cluster client", () => {
  const CLIENTS = {
    'ioredis 6': (options: ClusterOptions, nodes: ClusterNode[] = cluster.addresses) =>
      new Cluster(nodes, options),
    'ioredis 5': (options: ClusterOptions, nodes: ClusterNode[] = cluster.addresses) =>
      new OlderCluster(nodes, options as ConstructorParameters<typeof OlderCluster>[1]) as unknown as Cluster,
  };

  const VARIANTS: [string, ClusterOptions, keyPrefix?: string][] = [
    ['with its defaults', {}],
    ['with a keyPrefix', { keyPrefix: 'app:' }, 'app:lock:'],
    ['with a keyPrefix that has braces', { keyPrefix: '{app}:' }, '{app}:lock:'],
    ['with a keyPrefix that is half a brace', { keyPrefix: 'app{' }, 'app{lock:'],
    ['with a keyPrefix that has an empty hash tag', { keyPrefix: 'a{}' }, 'a{}lock:'],
    ['with a keyPrefix of its nodes', { redisOptions: { keyPrefix: 'node:' } }, 'node:lock:'],
    ['with automatic pipelining', { enableAutoPipelining: true, keyPrefix: 'p:' }, 'p:lock:'],
    ['with automatic pipelining of its nodes', { redisOptions: { enableAutoPipelining: true } }],
    ['that reads from replicas', { scaleReads: 'slave' }],
    ['that connects when it is used', { lazyConnect: true }],
    ['that does not queue', { enableOfflineQueue: false }],
    ['with RESP2', { redisOptions: { protocol: 2 } as object }],
    ['with sharded subscribers', { shardedSubscribers: true }],
    ['that is given other addresses', { natMap: (address: string) => addressOf(address) }],
  ];

  const addressOf = (address: string) => ({ host: 'localhost', port: Number(address.split(':')[1]) });

  describe.each(Object.entries(CLIENTS))('of %s', (_, make) => {
    const client = (options: ClusterOptions, nodes?: ClusterNode[]): Cluster =>
      environment.clientWithListener(make(options, nodes));

    it.each(VARIANTS)('%s: locks and wakes like any other', async (_title, options, keyPrefix = 'lock:') => {
      const locks = service(client(options));
      await expectHandOvers(locks, service(client(options)));
      const lease = await locks.acquire('key');
      expect(await owned({ keyPrefix }).tryAcquire('key')).toBeNull();
      expect(await cluster.client().hgetall(`${keyPrefix}key`)).toEqual({ [lease.owner]: '1' });
      await lease.release();
      expect(await cluster.client().exists(`${keyPrefix}key`)).toBe(0);
    });

    it('is neither changed nor closed', async () => {
      const own = client({ lazyConnect: true });
      await own.connect();
      const picture = () => ({
        options: inspect(own.options),
        properties: Object.getOwnPropertyNames(own).sort(),
        listeners: own.eventNames().map((event) => [event, own.listenerCount(event)]),
        status: own.status,
      });
      const before = picture();
      const locks = service(own);
      await expectHandOvers(locks, owned());
      await locks.health();
      await locks.onApplicationShutdown();
      expect(picture()).toEqual(before);
      for (const node of own.nodes()) expect(node.listenerCount('close')).toBeLessThanOrEqual(1);
      expect(await own.set('key', 'value')).toBe('OK');
      await own.del('key');
    });

    it('with numbers as strings is refused at boot: ioredis has no node for part of all names', async () => {
      const own = client({ redisOptions: { stringNumbers: true } });
      expect(() => service(own)).toThrow(/^connection: with stringNumbers, /);
      const names = Array.from({ length: 30 }, (_, n) => `name ${String(n)}`);
      if (own.status !== 'ready') await once(own, 'ready');
      expect(names.filter((name) => own.slots[slotOf(name)] === undefined)).not.toEqual([]);
    });

    it('with nodes in its list that read from replicas locks like any other', async () => {
      const listed = cluster.addresses.map((address) => ({ ...address, readOnly: true, keyPrefix: 'app:' }));
      const locks = service(client({ keyPrefix: 'app:' }, listed));
      await expectHandOvers(locks, owned({ keyPrefix: 'app:lock:' }));
    });
  });
});

describe('A cluster of our own', () => {
  it('is found by one of its nodes, given as options, a port or a URL', async () => {
    const [{ port } = { port: 0 }] = cluster.addresses;
    const ways = [[{ host: '127.0.0.1', port }], [port], [`redis://127.0.0.1:${String(port)}`]];
    for (const nodes of ways) await expectHandOvers(service({ cluster: nodes }), owned());
  });

  it('is used at all of its nodes by the user of a URL', async () => {
    const masters = await cluster.masters();
    for (const master of masters)
      await master.client().acl('SETUSER', 'by-url', 'reset', 'on', '>w%rd', '~*', '&*', '+@all');
    const [{ port } = { port: 0 }] = cluster.addresses;
    const locks = service({ cluster: [`redis://by-url:w%25rd@127.0.0.1:${String(port)}`] });
    for (let n = 0; n < 20; n++) await (await locks.acquire(`name ${String(n)}`)).release();
    for (const master of masters) expect(await master.client().client('LIST')).toContain('user=by-url');
  });

  it('with a prefix in its list of nodes is refused at boot, unless all have it', async () => {
    const nodes = cluster.addresses.map((address) => ({ ...address, keyPrefix: 'node:' }));
    expect(() => service({ cluster: nodes })).toThrow('two keyPrefix');
    const locks = service({ cluster: nodes, options: { keyPrefix: 'node:' } });
    await expectHandOvers(locks, owned({ keyPrefix: 'node:lock:' }));
  });

  it('that is not there: an error in time, one line of news, and no password in it', async () => {
    const events: LockEvent[] = [];
    const nodes = [`redis://user:${PASSWORD}@127.0.0.1:1`, { host: '127.0.0.1', port: 2 }];
    const options = { redisOptions: { password: PASSWORD } };
    const locks = service({ cluster: nodes, options }, { leaseTime: 3_000 });
    locks.events$.subscribe((event) => events.push(event));
    const error = await locks.acquire('key', { waitTime: 1_500 }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(LockUnavailableError);
    const health = await locks.health();
    expect(health).toMatchObject({ status: 'down', nodes: [{ node: 'cluster 127.0.0.1:1, 127.0.0.1:2' }] });
    expect(events.filter(({ type }) => type === 'disconnected')).toHaveLength(1);
    expect(inspect([error, events, health], { depth: Infinity })).not.toContain(PASSWORD);
  });

  it('tells of a lost connection to a node and of its return, and wakes waiters there', async () => {
    const locks = owned();
    const other = owned();
    const events: LockEvent[] = [];
    locks.events$.subscribe((event) => events.push(event));
    const lease = await locks.acquire('cut');
    const master = await cluster.masterOf(await cluster.slotOf('lock:cut'));
    const waiting = other.acquire('cut');
    await until(async () => (await locks.inspect('cut'))?.waiters.processes === 1);
    await master.client().call('CLIENT', 'KILL', 'TYPE', 'NORMAL', 'SKIPME', 'YES');
    await master.client().call('CLIENT', 'KILL', 'TYPE', 'PUBSUB');
    const node = `127.0.0.1:${String(master.port)}`;
    await until(() => events.some((event) => event.type === 'disconnected' && event.node === node));
    await lease.release();
    await (await waiting).release();
    await until(() => events.some((event) => event.type === 'reconnected' && event.node === node));
  });

  it('tells listeners to sharded messages also by its very first command', async () => {
    const ticket = await (await owned().acquire('resumed')).handOver({ within: 3 * LONG });
    const master = await cluster.masterOf(await cluster.slotOf('lock:resumed'));
    const listener = environment.client(new Redis(master.url));
    await listener.ssubscribe('redisson_lock__channel:{lock:resumed}');
    const told = once(listener, 'smessage');
    // The lock ends sooner now than those that wait have been told.
    const lease = await owned().resume(ticket);
    expect(await told).toEqual(['redisson_lock__channel:{lock:resumed}', '0']);
    await lease.release();
  });

  it('leaves no connection behind', async () => {
    const [server] = cluster.servers;
    const count = async () =>
      Number(/connected_clients:(\d+)/.exec((await server?.client().info('clients')) ?? '')?.[1]);
    await cluster.client().ping();
    const before = await count();
    const locks = service({ cluster: cluster.addresses });
    await expectHandOvers(locks, owned());
    await environment.end();
    await until(async () => (await count()) <= before);
  });

  it('leaves no timer behind that would look its slots up, in whatever moment it ends', async () => {
    const ends = Array.from({ length: 5 }, async () => {
      // With ioredis's own timer, the process is always in the middle of a look.
      const url = { cluster: cluster.addresses, options: { slotsRefreshInterval: 1 } };
      const worker = await Worker.start({ url });
      environment.add(() => worker.kill());
      await worker.call('acquire', 'a');
      await worker.stop();
    });
    await Promise.all(ends);
  });
});

it('closes where the application has ended its client before', async () => {
  const client = cluster.client().duplicate();
  const locks = service(client);
  await Promise.all(['a', 'b', 'c'].map((name) => locks.acquire(`ended:${name}`)));
  client.disconnect();
  let answers = 0;
  locks.events$.subscribe(({ type }) => type === 'release-failed' && answers++);
  await locks.close();
  expect(answers).toBe(3);
});
