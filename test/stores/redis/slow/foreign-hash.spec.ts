import { beforeAll, describe, expect, it } from '@jest/globals';
import { LockLostError, type LockService } from '../../../../lib/index.js';
import { lockOf } from '../../../queue/kinds.js';
import { TestEnvironment } from '../../../support/test-environment.js';
import { until } from '../../../scenarios/until.js';
import { expectMismatch, lockingIn, type Place, placesOf } from '../foreign.js';

/** What an application, or another kind of lock of another library, keeps in a hash. */
const HASHES: [string, Record<string, string>][] = [
  ['fields that are no owners', { name: 'bob' }],
  ['a number under a name', { visits: '7' }],
  ['a field that only ends like an owner', { 'last seen by user:7': '1' }],
  ['an owner without a number', { 'user:': '1' }],
  ['a number without an owner', { ':7': '1' }],
  ['a text under what looks like an owner', { 'user:7': 'bob' }],
  ['a count of nothing', { 'user:7': '0' }],
  ['a count below nothing', { 'user:7': '-1' }],
  ['a count that is not whole', { 'user:7': '1.5' }],
  ['an owner and a count, and no end', { 'product:12': '2' }],
  ['two fields that look like owners', { 'user:7': '1', 'user:8': '2' }],
  ['a read-write lock of Redisson', { mode: 'read', '8743c9c0-0795-4907-87fd-6c719a6b4586:1': '1' }],
];

const environment = TestEnvironment.ofAll();

describe.each(placesOf(environment))('A hash of the application on %s', (_, open) => {
  let place: Place;
  let locks: LockService;

  beforeAll(async () => {
    ({ place, locks } = await lockingIn(environment, open));
  });

  const put = async (key: string, hash: Record<string, string>) => {
    for (const client of place.clients) await client.multi().del(key).hset(key, hash).exec();
  };
  const expectUntouched = async (key: string, hash: Record<string, string>) => {
    for (const client of place.clients) {
      expect(await client.hgetall(key)).toEqual(hash);
      expect(await client.pttl(key)).toBe(-1);
      expect((await client.keys(`*${key}*`)).filter((other) => other.includes('queue'))).toEqual([]);
    }
  };

  it.each(HASHES)('with %s is no lock to anything, and stays', async (title, hash) => {
    const key = `app:${title}`;
    await put(key, hash);
    await expectMismatch(key, locks.inspect(key));
    await expectMismatch(key, locks.forceRelease(key));
    for (const [, kind] of place.kinds) {
      const lock = lockOf(locks, key, kind);
      await expectMismatch(key, lock.acquire());
      await expectMismatch(key, lock.tryAcquire());
      await expectMismatch(
        key,
        lock.using(() => 'ran'),
      );
      await expectMismatch(key, lock.isLocked());
      await expectMismatch(key, lock.remainingTime());
      await expectMismatch(key, lock.forceRelease());
      await expectMismatch(key, locks.getMultiLock([lock, locks.getLock('beside')]).acquire());
    }
    await expectUntouched(key, hash);
    expect(await locks.inspect('beside')).toBeNull();
  });

  it('that replaces a lease is its loss, at once, and outlives it', async () => {
    for (const [name, kind] of place.kinds) {
      const lost = { code: 'LOCK_LOST', reason: 'taken', cause: { code: 'LOCK_KIND_MISMATCH', key: name } };
      const take = async () => {
        for (const client of place.clients) await client.del(name);
        const lease = await lockOf(locks, name, kind).acquire({ leaseTime: 60_000 });
        await put(name, { name: 'bob' });
        return lease;
      };
      const extended = await take();
      await expect(extended.extend(120_000)).rejects.toMatchObject(lost);
      expect(extended.held).toBe(false);
      await extended.release();
      const released = await take();
      await released.release();
      await expectUntouched(name, { name: 'bob' });
    }
    // And where nothing is asked for but the renewal of the watchdog.
    const renewed = await Promise.all(
      place.kinds.map(([name, kind]) => lockOf(locks, `${name}-renewed`, kind).acquire()),
    );
    for (const { name } of renewed) await put(name, { name: 'bob' });
    for (const { signal, name } of renewed) {
      await until(() => signal.aborted);
      expect(signal.reason).toBeInstanceOf(LockLostError);
      expect(signal.reason).toMatchObject({ reason: 'taken', cause: { code: 'LOCK_KIND_MISMATCH' } });
      await expectUntouched(name, { name: 'bob' });
    }
  });

  it.each(['8743c9c0-0795-4907-87fd-6c719a6b4586:47', 'kept:8743c9c0:1', 'java:1'])(
    'is not what %s holds: that is a lock, which Redisson counts up',
    async (owner) => {
      await put('theirs', { [owner]: '2' });
      for (const client of place.clients) await client.pexpire('theirs', 60_000);
      expect(await locks.tryAcquire('theirs')).toBeNull();
      expect(await locks.tryAcquire(['theirs', 'beside'])).toBeNull();
      expect(await locks.inspect('theirs')).toMatchObject({ holders: [{ owner }] });
      expect(await locks.forceRelease('theirs')).toBe(true);
      await (await locks.acquire('theirs')).release();
    },
  );
});
