import { expect, it } from '@jest/globals';
import { now } from '../../lib/core/deadline.js';
import { Tenure } from '../../lib/core/tenure.js';
import { until } from '../scenarios/until.js';

it('a tenure that was granted for less is overdue by the lease that was confirmed since', () => {
  const origin = { owner: 'me', fencingToken: 1, grantedAt: now(), leaseTime: 1_000 };
  const tenure = new Tenure('a', { leaseTime: 30_000, renewed: true }, origin, () => undefined);
  // A sixth of it is left, and no renewal has failed yet.
  tenure.prolong(now() - 25_000, 30_000);
  expect(tenure.overdue).toBe(false);
  tenure.failures = 1;
  expect(tenure.overdue).toBe(true);
  // Half of it is left.
  tenure.prolong(now() - 15_000, 30_000);
  tenure.failures = 1;
  expect(tenure.overdue).toBe(false);
  tenure.end();
});

it('is lost when a shortened lease is over, though it is never looked at', async () => {
  const origin = { owner: 'me', fencingToken: 1, grantedAt: now(), leaseTime: 60_000 };
  let ended = false;
  const tenure = new Tenure('a', { leaseTime: 60_000, renewed: true }, origin, () => (ended = true));
  expect(tenure.shorten(now() + 30)).toBe(true);
  await until(() => ended);
  expect(tenure.loss?.reason).toBe('expired');
});
