import { randomUUID } from 'node:crypto';
import { expect, it } from '@jest/globals';
import { createStore } from '../../../support/store.js';
import { FAIR, STAND } from '../../../../lib/testing/store-suite/queue-terms.js';
import { fenceOf, roleOf } from '../../../support/keys.js';
import { TestEnvironment } from '../../../support/test-environment.js';

const environment = TestEnvironment.ofEach();

const HOURS = 3_600_000;

it('a queue outlives the hold of its first waiter, also where the last one asks for a short lease', async () => {
  const server = await environment.server();
  const store = createStore({ connection: server.url }, { keyPrefix: 'lock:', leaseTime: 3 * HOURS });
  const name = 'a';
  const stand = (owner: string, leaseTime: number) =>
    store.acquire({ name, owner, leaseTime, queue: { ...FAIR, ...STAND } });
  const listening = server.client().duplicate();
  await listening.subscribe('lock_queue__channel:b', 'lock_queue__channel:c');
  await stand('a:1', 1_000);
  await stand('b:1', 3 * HOURS);
  await stand('c:1', 30_000);
  await store.release({ name, owner: 'a:1', leaseTime: 1_000, queue: FAIR });
  const keys = await server.client().keys('*');
  const [queue = ''] = keys.filter((key) => roleOf(key) === 'queue');
  const hold = await server.client().pttl('lock:a');
  expect(hold).toBeGreaterThan(2 * HOURS);
  expect(await server.client().pttl(queue)).toBeGreaterThan(hold);
  listening.disconnect();
  await store.close();
});

it('a hand-over behind another owner takes an entry also while its client has no subscription', async () => {
  const server = await environment.server();
  const store = createStore({ connection: server.url }, { keyPrefix: 'lock:', leaseTime: 30_000 });
  environment.add(() => store.close());
  const queue = { kind: 'lock', mode: 'exclusive', capacity: 1 } as const;
  await store.acquire({ name: 'a', owner: 'b:1', leaseTime: 30_000 });
  const lost = { name: 'a', owner: 'c:1', leaseTime: 30_000, queue };
  const reply = await store.queues?.handOver?.(lost, { owner: 'c:2', leaseTime: 60_000 });
  expect(reply).toMatchObject({ released: 'taken', next: { granted: false, holder: 'b:1' } });
  expect((await store.inspect('a'))?.queue.map(({ owner }) => owner)).toEqual(['c:2']);
});

it('a forced release of a semaphore takes the server as long for each holder, however many there are', async () => {
  const server = await environment.server();
  const store = createStore({ connection: server.url }, { keyPrefix: 'lock:', leaseTime: 30_000 });
  environment.add(() => store.close());
  const redis = server.client();
  /** Seconds of the server's processor: those in which it does not run do not count. */
  const used = async () => Number(/used_cpu_user:([\d.]+)/.exec(await redis.info('cpu'))?.[1]);
  const timeFor = async (permits: number) => {
    const name = String(permits);
    const owners = Array.from({ length: permits }, (_, n) => `${randomUUID()}:${String(n)}`);
    const end = Date.now() + 60_000;
    await redis.zadd(`lock:${name}`, ...owners.flatMap((owner) => [end, `s${owner}`]));
    await redis.pexpire(`lock:${name}`, 60_000);
    await redis.set(fenceOf(`lock:${name}`), `1 ${owners[0] ?? ''} semaphore ${String(permits)}`);
    const before = await used();
    expect(await store.forceRelease(name)).toBe(true);
    expect(await redis.exists(`lock:${name}`)).toBe(0);
    return (await used()) - before;
  };
  await timeFor(100); // now the server knows the scripts
  const few = await timeFor(4_000);
  expect(await timeFor(40_000)).toBeLessThan(30 * few);
});
