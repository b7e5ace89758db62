import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import type { LockService } from '../../../../lib/index.js';
import { until } from '../../../scenarios/until.js';
import { TcpProxy } from '../../../support/tcp-proxy.js';
import { TestEnvironment } from '../../../support/test-environment.js';
import { clusterOfAll } from '../../../support/test-servers.js';

const environment = TestEnvironment.ofEach();

const cluster = clusterOfAll();

/** A proxy before each node, and a connection that knows no other way. */
async function waysToAll() {
  const ways = await Promise.all(cluster.addresses.map(({ port }) => TcpProxy.start(port)));
  for (const way of ways) environment.add(() => way.stop());
  const natMap = Object.fromEntries(
    cluster.addresses.map(({ host, port }, index) => [
      `${host}:${String(port)}`,
      { host, port: ways[index]!.port },
    ]),
  );
  return { ways, connection: { cluster: Object.values(natMap), options: { natMap } } };
}

/** A service that reaches each node over a proxy, and has used all its connections. */
async function stage() {
  const { ways, connection } = await waysToAll();
  const locks = environment.service({ connection });
  const names = Array.from({ length: 12 }, (_, n) => `order:${String(n)}`);
  const callAll = async () => {
    const leases = await Promise.all(names.map((name) => locks.acquire(name)));
    await Promise.all(leases.map((lease) => lease.release()));
  };
  await callAll();
  const drop = async () => {
    // Looks at the server after a reconnection are over.
    await sleep(1_000);
    for (const way of ways) way.forgetConnections();
  };
  return { locks, callAll, drop };
}

it('idle connections to all nodes that were dropped without a word are replaced under the first calls', async () => {
  const { locks, callAll, drop } = await stage();
  await drop();
  await callAll();
  expect(locks.leases()).toEqual([]);
});

// Each with a service of its own: after a long wait, the next one may take twice as long.
it.each<[string, (locks: LockService) => Promise<unknown>, unknown]>([
  ['list', (locks) => locks.list(), { locks: [{ name: 'order:7' }], cursor: null }],
  ['inspect', (locks) => locks.inspect('order:7'), { name: 'order:7' }],
  ['health', async (locks) => (await locks.health()).nodes.filter(({ status }) => status === 'down'), []],
  ['requestRelease', async (locks) => [await locks.requestRelease('order:7')], [1]],
  ['tryAcquire', (locks) => locks.tryAcquire('other'), { held: true }],
  ['forceRelease', async (locks) => [await locks.forceRelease('order:7')], [true]],
])(
  'one %s is enough: it looks for the nodes over no connection that was dropped, too',
  async (_, call, answer) => {
    const { locks, drop } = await stage();
    // Not by the service itself, which would ask for its own lease from time to time.
    await environment.service({ connection: { cluster: cluster.addresses } }).acquire('order:7');
    await drop();
    expect(await call(locks)).toMatchObject(answer as object);
  },
);

it('the connections for messages are replaced together with them: a lock that is waited for right then comes by a message', async () => {
  const { locks, drop } = await stage();
  await locks.acquire('held');
  await until(async () => (await locks.health()).nodes.some(({ subscriber }) => subscriber === true));
  const other = environment.service({ connection: { cluster: cluster.addresses } });
  const busy = await other.acquire('busy');
  await drop();
  // Less than until the next question to the connections for messages.
  const waiting = locks.acquire('busy', { waitTime: 4_500 });
  await until(async () => ((await other.inspect('busy'))?.queue.length ?? 0) > 0);
  // It asks once by itself after a second.
  await sleep(1_500);
  await busy.release();
  expect((await waiting).held).toBe(true);
});

it('a master that has never answered takes nothing of the time of the first command, which goes to another one', async () => {
  const { ways, connection } = await waysToAll();
  const [silent] = await cluster.masters();
  let name = '';
  for (let n = 0, at = silent; at === silent; n++) {
    name = `first:${String(n)}`;
    at = await cluster.masterOf(await cluster.slotOf(`lock:${name}`));
  }
  ways[cluster.servers.indexOf(silent!)]!.dropReplies(true);
  for (const way of ways) way.replyDelay(50);
  expect(await environment.service({ connection }).tryAcquire(name)).toMatchObject({ held: true });
});
