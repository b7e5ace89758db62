import { expect, it } from '@jest/globals';
import { createStore } from '../../support/store.js';
import { TestEnvironment } from '../../support/test-environment.js';

const environment = TestEnvironment.ofEach();

it.each([
  [100, 1],
  [101, 2],
  [200, 2],
])('%i holds are renewed in commands of a hundred each: %i', async (count, commands) => {
  const server = await environment.server();
  const store = createStore({ connection: server.url }, { keyPrefix: 'lock:', leaseTime: 30_000 });
  environment.add(() => store.close());
  const holds = Array.from({ length: count }, (_, n) => ({
    name: `n:${String(n)}`,
    owner: 'a:1',
    leaseTime: 30_000,
  }));
  await Promise.all(holds.map((hold) => store.acquire(hold)));
  // Known to the server from here on.
  await Promise.all(store.renew(holds.slice(0, 1)));
  await server.client().config('RESETSTAT');
  expect(new Set(await Promise.all(store.renew(holds)))).toEqual(new Set(['held']));
  const calls = /cmdstat_evalsha:calls=(\d+)/.exec(await server.client().info('commandstats'))?.[1];
  expect(Number(calls)).toBe(commands);
});
