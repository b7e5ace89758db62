import { describe, expect, it } from '@jest/globals';
import type { Cluster, Redis } from 'ioredis';
import { queueOf } from '../../../support/keys.js';
import { TestEnvironment } from '../../../support/test-environment.js';
import { until } from '../../../scenarios/until.js';
import { lockOf, queued, READ, WRITE } from '../../../queue/kinds.js';
import { lockingIn, placesOf } from '../foreign.js';

/** What the application writes under the name while an owner waits. */
const VALUES: [string, (client: Redis | Cluster, key: string) => Promise<unknown>][] = [
  ['a text', (client, key) => client.set(key, 'bob')],
  ['a list', (client, key) => client.rpush(key, 'bob')],
  ['a sorted set', (client, key) => client.zadd(key, 10, 'bob')],
  ['a hash', (client, key) => client.hset(key, 'name', 'bob')],
];

const environment = TestEnvironment.ofAll();

describe.each(placesOf(environment).slice(0, 2))('A waiter on %s', (_, open) => {
  it.each(VALUES)('leaves no entry behind where %s replaces the hold', async (value, write) => {
    const { place, locks } = await lockingIn(environment, open);
    const waiter = environment.service({ ...place.options, keyPrefix: '' });
    for (const [title, kind] of place.kinds) {
      const key = `${title}:${value}`;
      const holder = kind === READ ? WRITE : kind;
      for (let n = 0; n < (kind.permits ?? 1); n++)
        await lockOf(locks, key, holder).acquire({ leaseTime: 60_000 });
      const leaving = new AbortController();
      const waits = lockOf(waiter, key, kind).acquire({ waitTime: Infinity, signal: leaving.signal });
      waits.catch(() => undefined);
      await queued(locks, key, 1);
      for (const client of place.clients) {
        await client.del(key);
        await write(client, key);
      }
      leaving.abort();
      await expect(waits).rejects.toThrow();
      for (const client of place.clients) await until(async () => (await client.exists(queueOf(key))) === 0);
      for (const client of place.clients) expect(await client.exists(key)).toBe(1);
    }
  });
});
