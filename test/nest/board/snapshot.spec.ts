import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { takeSnapshot } from '../../../lib/board/feed/snapshot.js';
import { stateOf } from '../../../lib/module/service-state.js';
import { TestEnvironment } from '../../support/test-environment.js';

const environment = TestEnvironment.ofEach();

it('shows since when callers of the process wait, also without an entry in the queue of the store', async () => {
  const locks = environment.service({ store: 'memory' });
  const look = async () =>
    (await takeSnapshot(stateOf(locks)!, 100, undefined, (name) => name)).locks.get('a');
  const lease = await locks.acquire('a');
  expect(await look()).toMatchObject({ waiting: 0, waitingSince: null });
  const before = Date.now();
  const first = locks.acquire('a');
  const after = Date.now();
  await sleep(200);
  const second = locks.acquire('a');
  const both = await look();
  expect(both?.waiting).toBe(2);
  expect(both?.waitingSince).toBeGreaterThanOrEqual(before - 2);
  expect(both?.waitingSince).toBeLessThanOrEqual(after + 2);
  await lease.release();
  const next = await first;
  const left = await look();
  expect(left?.waiting).toBe(1);
  expect(left?.waitingSince).toBeGreaterThanOrEqual(before + 190);
  await next.release();
  await (await second).release();
});
