import { expect, it } from '@jest/globals';
import type { HealthStatus } from '../../lib/index.js';
import { overallStatus } from '../../lib/store/overall-status.js';

const nodes = (...states: HealthStatus[]) =>
  states.map((status) => ({ node: 'any', status, latency: undefined, error: undefined }));

it.each<[HealthStatus, number, HealthStatus[]]>([
  ['up', 1, ['up']],
  ['degraded', 1, ['degraded']],
  ['down', 1, ['down']],
  // A quorum of five.
  ['up', 3, ['up', 'up', 'up', 'up', 'up']],
  ['degraded', 3, ['up', 'up', 'down', 'up', 'down']],
  ['degraded', 3, ['up', 'up', 'degraded', 'down', 'down']],
  ['down', 3, ['up', 'up', 'down', 'down', 'down']],
  // Shards, which hold locks independently of each other.
  ['degraded', 1, ['down', 'up', 'down']],
  ['down', 1, ['down', 'down', 'down']],
])('is %s where %d are needed of %p', (status, needed, states) => {
  expect(overallStatus(nodes(...states), needed)).toBe(status);
});
