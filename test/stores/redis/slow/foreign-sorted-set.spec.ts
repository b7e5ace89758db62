import { beforeAll, describe, expect, it } from '@jest/globals';
import { type LockService } from '../../../../lib/index.js';
import type { LockStore } from '../../../../lib/store/lock-store.js';
import { FAIR, lockOf, semaphore } from '../../../queue/kinds.js';
import { TestEnvironment } from '../../../support/test-environment.js';
import { fenceOf } from '../../../support/keys.js';
import { expectMismatch, FAIR_TERMS, LEASE, lockingIn, type Place, placesOf } from '../foreign.js';

interface SortedSet {
  /** Members that look like holders, by what may look like deadlines. */
  readonly members: readonly (string | number)[];
  /** When it ends, ms since 1970. */
  readonly end?: number;
  /** What an earlier lock under the name has left. */
  readonly fence?: string;
}

const FUTURE = Date.now() + 3_600_000;
const KIND = '1 client:1 fair 1';
const TOKEN = '1 client:1';
const SETS: [string, SortedSet][] = [
  ['points', { members: [10, 'student:1', 12, 'student:2'] }],
  ['moments that are over', { members: [1_700_000_000, 'session:41', 1_700_000_500, 'session:42'] }],
  ['moments to come', { members: [FUTURE, 'session:41', FUTURE + 500, 'xsession:42'] }],
  ['points, after a fair lock', { members: [10, 'student:1'], fence: KIND }],
  ['moments to come, after a fair lock', { members: [FUTURE, 'session:41'], fence: KIND }],
  ['points and an end', { members: [10, 'student:1', 12, 'student:2'], end: FUTURE }],
  ['moments to come, and an end', { members: [FUTURE, 'session:41'], end: FUTURE }],
  ['points and an end, after a plain lock', { members: [10, 'student:1'], end: FUTURE, fence: TOKEN }],
  ['another kind of members, after a fair lock', { members: [10, 'bob'], end: FUTURE, fence: KIND }],
];

const environment = TestEnvironment.ofAll();

describe.each(placesOf(environment))('A sorted set of the application on %s', (_, open) => {
  let place: Place;
  let locks: LockService;
  let store: LockStore;

  beforeAll(async () => {
    ({ place, locks, store } = await lockingIn(environment, open));
  });

  const put = async (key: string, { members, end, fence }: SortedSet) => {
    for (const client of place.clients) {
      await client.del(fenceOf(key));
      if (fence !== undefined) await client.set(fenceOf(key), fence, 'PX', 3_600_000);
      await client.del(key);
      await client.zadd(key, ...members);
      if (end !== undefined) await client.pexpireat(key, end);
    }
  };
  /** All that is kept, and until when. */
  const kept = async (key: string) =>
    Promise.all(
      place.clients.map(async (client) => [
        (await client.dumpBuffer(key)).toString('hex'),
        await client.call('PEXPIRETIME', key),
        await client.get(fenceOf(key)),
        (await client.keys(`*${key}*`)).filter((other) => other.includes('queue')),
      ]),
    );

  it.each(SETS)('with %s is no lock to anything, and stays', async (title, set) => {
    const key = `app:${title}`;
    await put(key, set);
    const before = await kept(key);
    const attempt = async (work: Promise<unknown>) => {
      await expectMismatch(key, work);
      expect(await kept(key)).toEqual(before);
    };
    await attempt(locks.inspect(key));
    await attempt(locks.forceRelease(key));
    for (const [, kind] of place.kinds) {
      const lock = lockOf(locks, key, kind);
      await attempt(lock.tryAcquire());
      await attempt(lock.acquire());
      await attempt(lock.using(() => 'ran'));
      await attempt(lock.isLocked());
      await attempt(lock.remainingTime());
      await attempt(lock.forceRelease());
      await attempt(locks.getMultiLock([lock, locks.getLock('beside')]).acquire());
    }
    const hold = { name: key, owner: 'client:1' };
    await attempt(store.release(hold));
    await attempt(store.release({ ...hold, keepFor: 1_000 }));
    if (place.kinds.length > 1) {
      await attempt(store.release({ ...hold, queue: FAIR_TERMS }));
      await attempt(store.release({ ...hold, keepFor: 1_000, queue: FAIR_TERMS }));
    }
    // Whether it has lost the lock to a lock or to something else: it has lost it.
    for (const leaseTime of [0, LEASE]) {
      const renewal = Promise.all(store.renew([{ ...hold, leaseTime }]));
      if (set.end === undefined) await attempt(renewal);
      else expect(await renewal.catch(() => ['lost'])).not.toEqual(['held']);
    }
    expect(await kept(key)).toEqual(before);
    expect(await locks.inspect('beside')).toBeNull();
  });
});

describe('The holders of a lock whose fence was evicted', () => {
  it('keep it, and give it up; others get it when it has ended', async () => {
    const server = await environment.server();
    const [ours, theirs] = [1, 2].map(() =>
      environment.service({ connection: server.url, leaseTime: LEASE }),
    );
    const [long, short] = [
      await lockOf(ours!, 'key', semaphore(2)).acquire({ leaseTime: 60_000 }),
      await lockOf(theirs!, 'key', semaphore(2)).acquire({ leaseTime: 30_000 }),
    ];
    const fence = fenceOf('lock:key');
    expect(await server.client().del(fence)).toBe(1);
    const third = environment.service({ connection: server.url });
    const before = await server.client().dump('lock:key');
    for (const [, work] of [
      ['inspect', () => third.inspect('key')],
      ['forceRelease', () => third.forceRelease('key')],
      ['fair', () => lockOf(third, 'key', FAIR).tryAcquire()],
      ['plain', () => third.tryAcquire('key')],
    ] as const) {
      await expect(work()).rejects.toMatchObject({ code: 'LOCK_KIND_MISMATCH' });
    }
    expect(await server.client().dump('lock:key')).toBe(before);
    await long.extend(90_000);
    await long.release();
    await short.release();
    expect(await server.client().exists('lock:key')).toBe(0);
    await (await lockOf(third, 'key', FAIR).acquire()).release();
  });
});
