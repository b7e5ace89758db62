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
