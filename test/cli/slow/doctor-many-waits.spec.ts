import { expect, it } from '@jest/globals';
import { deadlockFindings } from '../../../lib/cli/doctor/deadlocks.js';
import { MemoryLockStore } from '../../../lib/index.js';
import { until } from '../../scenarios/until.js';
import { TestEnvironment } from '../../support/test-environment.js';

const environment = TestEnvironment.ofAll();

it.each([
  [256, 'there is no deadlock'],
  [257, 'there is no deadlock among 256 of the locks that are waited for'],
])('Where %i locks are waited for, doctor says which it has looked at', async (count, message) => {
  const store = new MemoryLockStore();
  const [holder, waiter] = [environment.service({ store }), environment.service({ store })];
  const names = Array.from({ length: count }, (_, n) => `order:${String(n)}`);
  await Promise.all(names.map((name) => holder.acquire(name)));
  for (const name of names) waiter.acquire(name, { waitTime: 60_000 }).catch(() => undefined);
  await until(async () => (await holder.list({ state: 'waited', limit: 1_000 })).locks.length === count);
  const findings = await deadlockFindings(holder);
  expect(findings).toEqual([{ level: 'ok', code: 'deadlock', node: undefined, message }]);
});
