import { describe, expect, it } from '@jest/globals';
import { Cluster } from 'ioredis';
import { Cluster as OlderCluster } from 'ioredis-5';
import type { LockEvent } from '../../../../lib/index.js';
import { until } from '../../../scenarios/until.js';
import { TestEnvironment } from '../../../support/test-environment.js';
import { clusterOfAll } from '../../../support/test-servers.js';

const environment = TestEnvironment.ofEach();
const cluster = clusterOfAll();

const onAll = (...command: [string, ...string[]]) =>
  Promise.all(cluster.servers.map((server) => server.client().call(...command)));

describe("A password that one node refuses for a while to a service's own connections", () => {
  /** A service with a user of its own. */
  async function serviceOf(username: string) {
    await onAll('ACL', 'SETUSER', username, 'reset', 'on', '>word', '~*', '&*', '+@all');
    const options = { redisOptions: { username, password: 'word' } };
    const connection = { cluster: cluster.addresses, options };
    return environment.service({ connection, leaseTime: 300_000 });
  }

  /** A service that has used its connection to the node of `order:1`. */
  async function stage() {
    const locks = await serviceOf('app');
    const told: LockEvent['type'][] = [];
    locks.events$.subscribe(({ type }) => told.push(type));
    await (await locks.acquire('order:1')).release();
    const node = await cluster.masterOf(await cluster.slotOf('lock:order:1'));
    const strangers = async () => String(await onAll('CLIENT', 'LIST')).match(/ user=default /g)?.length;
    const atFirst = await strangers();
    return {
      locks,
      told,
      kill: () => node.client().client('KILL', 'USER', 'app'),
      refuse: (by = [node]) =>
        Promise.all(by.map((each) => each.client().acl('SETUSER', 'app', 'resetpass'))),
      /** When each attempt to connect is over. */
      admit: async () => {
        await until(async () => (await strangers()) === atFirst);
        await onAll('ACL', 'SETUSER', 'app', '>word');
      },
    };
  }
  type Stage = Awaited<ReturnType<typeof stage>>;
  const status = async ({ locks }: Stage) => (await locks.health()).status;
  const isHeld = async ({ locks }: Stage) => (await locks.tryAcquire('order:1'))?.held;

  it.each<[string, (staged: Stage) => Promise<unknown>, unknown]>([
    ['call', isHeld, true],
    ['health report', status, 'up'],
  ])('is tried again by the first %s after it', async (_, first, answer) => {
    const staged = await stage();
    await staged.refuse();
    await staged.kill();
    await until(() =>
      isHeld(staged).then(
        () => false,
        (error: unknown) => (error as { permanent?: boolean }).permanent === true,
      ),
    );
    await staged.admit();
    expect(await first(staged)).toBe(answer);
  });

  it('is tried again by the first health report, also for messages', async () => {
    const staged = await stage();
    await (await serviceOf('holder')).acquire('order:1');
    // The messages for a process come from any of them.
    await staged.refuse(cluster.servers);
    const leaving = new AbortController();
    const waiting = staged.locks.acquire('order:1', { signal: leaving.signal });
    await until(() => staged.told.includes('disconnected'));
    leaving.abort();
    await expect(waiting).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
    await staged.admit();
    expect(await status(staged)).toBe('up');
  });

  it('and a connection that was ended alone leave the next report as it is', async () => {
    const staged = await stage();
    await staged.kill();
    await until(() => staged.told.includes('disconnected'));
    expect(await status(staged)).toBe('up');
  });
});

describe.each<[string, (redisOptions: { username: string; password: string }) => Cluster]>([
  ['6', (redisOptions) => new Cluster(cluster.addresses, { redisOptions })],
  ['5', (redisOptions) => new OlderCluster(cluster.addresses, { redisOptions }) as unknown as Cluster],
])("A password that rotates on the application's cluster client of ioredis %s", (_, make) => {
  /** A service over that client, which has a connection for messages. */
  async function stage() {
    await onAll('ACL', 'SETUSER', 'app', 'reset', 'on', '>first', '~*', '&*', '+@all');
    let password = 'first';
    const client = make({ username: 'app', password });
    // ioredis 6 copies the options of its nodes once, so each node has to be told.
    client.on('+node', (node) => (node.options.password = password));
    environment.clientWithListener(client);
    const locks = environment.service({ connection: client, leaseTime: 300_000 });
    const holder = environment.service({ connection: { cluster: cluster.addresses }, leaseTime: 300_000 });
    /** A hand-over by a message: the holder's lease lasts far longer. */
    const handOver = async () => {
      const held = await holder.acquire('order:1');
      const waiting = locks.acquire('order:1');
      await until(async () => (await holder.inspect('order:1'))?.waiters.processes === 1);
      await held.release();
      await (await waiting).release();
    };
    await handOver();
    const give = (next: string) => {
      password = next;
      for (const node of client.nodes()) node.options.password = next;
    };
    return { locks, handOver, give };
  }

  it('is that of the connection for messages, too', async () => {
    const { locks, handOver, give } = await stage();
    await onAll('ACL', 'SETUSER', 'app', 'resetpass', '>next');
    give('next');
    await onAll('CLIENT', 'KILL', 'USER', 'app');
    await until(() =>
      locks.tryAcquire('order:1').then(
        async (lease) => {
          await lease?.release();
          return true;
        },
        () => false,
      ),
    );
    await handOver();
    const { nodes } = await locks.health();
    expect(nodes.map(({ subscriber }) => subscriber)).not.toContain(false);
  });
});
