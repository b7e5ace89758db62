import { expect, it } from '@jest/globals';
import type { HealthStatus } from '../../lib/index.js';
import { kindMismatch, PLAIN } from '../../lib/store/kind-mismatch.js';
import { nodeWarnings, sameServerWarnings } from '../../lib/store/node-warnings.js';
import { overallStatus } from '../../lib/store/overall-status.js';
import type { NodeHealth } from '../../lib/store/store-health.js';
import { subscribeToMessages } from '../../lib/store/subscribe-to-messages.js';

const node = (name: string, part: Partial<NodeHealth> = {}): NodeHealth => ({
  node: name,
  status: 'up',
  latency: 1,
  error: undefined,
  ...part,
});

it('a server that may delete locks is warned of, and one that keeps them or does not say is not', () => {
  const nodes = [
    node('a', { evictionPolicy: 'noeviction' }),
    node('b', { evictionPolicy: 'allkeys-lru' }),
    node('c', { role: 'master' }),
    node('d', { role: 'replica', evictionPolicy: 'volatile-ttl' }),
  ];
  expect(nodeWarnings(nodes)).toMatchObject([
    { code: 'eviction-policy', node: 'b', message: expect.stringContaining('maxmemory-policy allkeys-lru') },
    { code: 'eviction-policy', node: 'd', message: expect.stringContaining('volatile-ttl') },
    { code: 'replica', node: 'd', message: expect.stringContaining('d is a replica') },
  ]);
});

it('a server that is named twice is warned of, each time, and an unknown run id is that of none', () => {
  const nodes = [
    node('a', { runId: '01' }),
    node('b', { runId: '02' }),
    node('c', { runId: '01' }),
    node('d', { runId: '01' }),
    ...['e', 'f'].map((name) => node(name, { runId: '0000' })),
    ...['g', 'h'].map((name) => node(name, { runId: '' })),
    ...['i', 'j'].map((name) => node(name)),
  ];
  expect(sameServerWarnings(nodes)).toMatchObject([
    { code: 'same-server', node: 'c', message: expect.stringContaining('a and c are the same server') },
    { code: 'same-server', node: 'd', message: expect.stringContaining('c and d are the same server') },
  ]);
});

it('a name that is in use otherwise says as what, and as a semaphore of how many permits', () => {
  const semaphore = (capacity: number) => ({ kind: 'semaphore', capacity });
  expect(kindMismatch('a', PLAIN, { kind: 'fair', capacity: 1 })).toMatchObject({
    key: 'a',
    message: expect.stringMatching(/used as a plain lock: the store holds a fair lock/),
  });
  expect(kindMismatch('a', semaphore(2), semaphore(3))).toMatchObject({
    message: expect.stringMatching(
      /used as a semaphore with 2 permits: the store holds a semaphore with 3 permits/,
    ),
  });
});

it('a client hears what its store tells: of queues, of losses, or nothing', async () => {
  const heard: string[] = [];
  const subscribe = (what: string) => (client: string) => {
    heard.push(`${what} of ${client}`);
    return Promise.resolve({ active: true, close: () => undefined });
  };
  const ignore = () => undefined;
  const losses = { subscribeToLosses: subscribe('losses') };
  await subscribeToMessages({ ...losses, queues: { subscribe: subscribe('queues') } }, 'me', ignore);
  await subscribeToMessages({ ...losses, queues: undefined }, 'me', ignore);
  expect(heard).toEqual(['queues of me', 'losses of me']);
  expect(subscribeToMessages({ queues: undefined }, 'me', ignore)).toBeUndefined();
});

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
