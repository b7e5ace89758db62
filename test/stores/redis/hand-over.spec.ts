import { expect, it } from '@jest/globals';
import type { LockModuleOptions } from '../../../lib/index.js';
import { createStore } from '../../support/store.js';
import { TestEnvironment } from '../../support/test-environment.js';
import { until } from '../../scenarios/until.js';

const environment = TestEnvironment.ofEach();

it.each(['held', 'waited for'])('a name that is %s as another kind says so at a hand-over', async (state) => {
  const server = await environment.server();
  const [one, two, three] = [0, 0, 0].map(() =>
    environment.service({ connection: server.url, localHandoff: 0 }),
  );
  const lease = await one!.acquire('a');
  const waiting = one!.acquire('a', { waitTime: 5_000 }).catch((error: unknown) => error);
  await until(async () => (await one!.health()).waiting === 1);
  await server.client().del('lock:a');
  const fair = await two!.getFairLock('a').acquire({ leaseTime: state === 'held' ? 20_000 : 400 });
  const next = three!.getFairLock('a').acquire({ waitTime: 20_000 });
  await until(async () => (await three!.health()).waiting === 1);
  await lease.release();
  expect(await waiting).toMatchObject({
    code: 'LOCK_KIND_MISMATCH',
    message: expect.stringContaining('fair lock'),
  });
  await fair.release();
  await (await next).release();
});

it('there is no hand-over where replicas have to confirm each grant', async () => {
  const settings = { keyPrefix: 'lock:', leaseTime: 30_000 };
  const connection = 'redis://127.0.0.1:1';
  const has = async (options: LockModuleOptions) => {
    const store = createStore(options, settings);
    const found = store.queues?.handOver !== undefined;
    await store.close();
    return found;
  };
  const replication = { replicas: 1 };
  expect([await has({ connection }), await has({ connection, replication })]).toEqual([true, false]);
});
