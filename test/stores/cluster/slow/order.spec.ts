import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Cluster } from 'ioredis';
import { createStore } from '../../../support/store.js';
import type { LockStore } from '../../../../lib/store/lock-store.js';
import { TestEnvironment } from '../../../support/test-environment.js';
import { until } from '../../../scenarios/until.js';
import { RedisCluster } from '../../../support/redis-cluster.js';
import { TcpProxy } from '../../../support/tcp-proxy.js';

const FAIR = { kind: 'fair', mode: 'exclusive', capacity: 1 } as const;

const environment = TestEnvironment.ofEach();
let cluster: RedisCluster;
let store: LockStore;

beforeAll(async () => {
  cluster = await RedisCluster.start();
  store = createStore(
    { connection: { cluster: cluster.addresses } },
    { keyPrefix: 'lock:', leaseTime: 30_000 },
  );
});

afterAll(async () => {
  await store.close();
  await cluster.stop();
});

it.each([
  ['plain', undefined],
  ['fair', FAIR],
])('an acquisition that is redirected does not come after its own release, %s', async (kind, queue) => {
  const owner = 'a:1';
  const name = `order:${kind}`;
  const slot = await cluster.slotOf(`lock:${name}`);
  await store.inspect(name); // connected, and certain of where the slot is
  const from = await cluster.masterOf(slot);
  const to = (await cluster.masters()).find((master) => master !== from) ?? from;
  await cluster.moveSlot(slot, to);
  const terms = queue && { ...queue, entry: undefined, ownWriteHold: undefined };
  const acquired = store.acquire({ name, owner, leaseTime: 30_000, queue: terms });
  const released = store.release({ name, owner, queue });
  await expect(acquired).rejects.toMatchObject({ effect: 'refused' });
  expect(await released).toBe('released'); // sent to two nodes, so it cannot tell
  expect(await store.inspect(name)).toBeNull();
});

it('an answer from the node that had the slot does not count once the release has gone to the new one', async () => {
  const owner = 'a:4';
  const name = 'order:moved';
  const slot = await cluster.slotOf(`lock:${name}`);
  const from = await cluster.masterOf(slot);
  const [to = from] = (await cluster.masters()).filter((master) => master !== from);
  const proxy = await TcpProxy.start(from.port);
  const client = new Cluster([{ host: '127.0.0.1', port: to.port }], {
    natMap: { [`127.0.0.1:${String(from.port)}`]: { host: '127.0.0.1', port: proxy.port } },
  });
  const proxied = createStore({ connection: client }, { keyPrefix: 'lock:', leaseTime: 30_000 });
  environment.add(async () => {
    await proxied.close();
    client.disconnect();
    await proxy.stop();
  });
  // Connected, and the script is known.
  await until(() =>
    proxied.inspect(name).then(
      () => true,
      () => false,
    ),
  );
  await proxied.acquire({ name, owner: 'a:0', leaseTime: 30_000 });
  await proxied.release({ name, owner: 'a:0' });

  // Nearly as long as a command is given, for a machine that takes its time to move the slot.
  proxy.replyDelay(1_800);
  const acquired = proxied.acquire({ name, owner, leaseTime: 30_000 });
  acquired.catch(() => undefined);
  await until(() => proxy.underway('replies') === 1);
  proxy.replyDelay(0);
  await cluster.moveSlot(slot, to);
  await until(async () => {
    client.refreshSlotsCache();
    return client.slots[slot]?.[0] === `127.0.0.1:${String(to.port)}`;
  });
  expect(await proxied.release({ name, owner })).toBe('released');
  await expect(acquired).rejects.toMatchObject({
    code: 'LOCK_UNAVAILABLE',
    cause: { message: 'the slot has moved meanwhile' },
  });
  expect(await store.inspect(name)).toBeNull();
});

it('a renewal of many asks each master for its own, and waits for none of the others', async () => {
  await cluster.settled();
  const names = Array.from({ length: 300 }, (_, n) => `order:${String(n)}`);
  const held = await Promise.all(
    names.map(async (name) => {
      const slot = await cluster.slotOf(`lock:${name}`);
      await store.acquire({ name, owner: 'a:3', leaseTime: 30_000 });
      return { name, master: await cluster.masterOf(slot) };
    }),
  );
  const [victim] = await cluster.masters();
  if (victim === undefined) throw new Error('no master');
  cluster.freeze(victim);
  const renewals = store.renew(held.map(({ name }) => ({ name, owner: 'a:3', leaseTime: 30_000 })));
  const ended: boolean[] = [];
  const answers = renewals.map(async (renewal, n) => {
    const state = await renewal.catch(() => 'unavailable');
    const frozen = held[n]?.master === victim;
    ended.push(frozen);
    return { state, frozen };
  });
  const results = await Promise.all(answers);
  cluster.thaw(victim);
  const [own, others] = [results.filter(({ frozen }) => frozen), results.filter(({ frozen }) => !frozen)];
  expect(new Set(others.map(({ state }) => state))).toEqual(new Set(['held']));
  // On a busy machine the replica of the frozen node takes over in that time.
  expect(['unavailable', 'held']).toEqual(expect.arrayContaining(own.map(({ state }) => state)));
  // The frozen node's came last.
  expect(ended).toEqual([...others.map(() => false), ...own.map(() => true)]);
});
