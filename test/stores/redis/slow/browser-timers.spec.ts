import { afterEach, beforeEach, expect, it } from '@jest/globals';
import type { RedisConnection } from '../../../../lib/index.js';
import { createStore } from '../../../support/store.js';
import { useBrowserTimers } from '../../../support/browser-timers.js';
import { RedisCluster } from '../../../support/redis-cluster.js';
import { TestEnvironment } from '../../../support/test-environment.js';

const environment = new TestEnvironment();
let nodes: RedisCluster | undefined;
let putBack: (() => void) | undefined;

beforeEach(() => {
  nodes = putBack = undefined;
});

afterEach(async () => {
  putBack?.();
  await environment.end();
  await nodes?.stop();
});

const cluster = async (): Promise<RedisConnection> => {
  nodes = await RedisCluster.start();
  return { cluster: nodes.addresses };
};

it.each([
  ['a server', async () => (await environment.server()).url],
  ['a cluster', cluster],
])('A subscription on %s begins and ends where timers are those of a browser', async (_, start) => {
  const connection = await start();
  putBack = useBrowserTimers();
  const store = createStore({ connection }, { keyPrefix: 'lock', leaseTime: 6_000 });
  environment.add(() => store.close());
  const subscription = await store.subscribeToReleases('a', () => undefined);
  expect(subscription.active).toBe(true);
  subscription.close();
  expect((await store.subscribeToReleases('a', () => undefined)).active).toBe(true);
});
