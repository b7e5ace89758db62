import { afterEach, expect, it } from '@jest/globals';
import { createStore } from '../../../lib/stores/create-store.js';
import { FAIR, STAND } from '../../../lib/testing/store-suite/queue-terms.js';
import { roleOf } from '../../support/keys.js';
import { TestEnvironment } from '../../support/test-environment.js';

const environment = new TestEnvironment();

afterEach(() => environment.end());

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
