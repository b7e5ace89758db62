import { afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { isLockUnavailableError, type LockService } from '../../../lib/index.js';
import { UnexpectedReply } from '../../../lib/stores/redis/connection/redis-errors.js';
import { TestEnvironment } from '../../support/test-environment.js';
import { until } from '../../scenarios/until.js';
import { lockKeys } from '../../support/keys.js';
import { serverOfAll } from '../../support/test-servers.js';

/** The client of an application that has opened a transaction on it: each command is answered with QUEUED. */
describe('On a shared client inside of MULTI', () => {
  const environment = TestEnvironment.ofAll();
  const server = serverOfAll();
  let redis: Redis;
  let shared: Redis;
  let locks: LockService;

  beforeAll(async () => {
    redis = server.client();
  });

  beforeEach(async () => {
    shared = redis.duplicate();
    locks = environment.service({ connection: shared, leaseTime: 12_000 });
    // The server knows the scripts from now on, so that a transaction really runs them.
    for (const lock of [locks.getLock('warm'), locks.getFairLock('up')])
      await (await lock.acquire()).release();
    await (await locks.acquire(['warm', 'up 2'])).release();
    await locks.inspect('warm');
  });

  afterEach(() => {
    shared.disconnect();
  });

  const unavailable = async (attempt: Promise<unknown>): Promise<void> => {
    const error: unknown = await attempt.then(
      (value) => ({ value }),
      (reason: unknown) => reason,
    );
    expect(error).toMatchObject({ code: 'LOCK_UNAVAILABLE', effect: 'unknown', permanent: false });
    expect(isLockUnavailableError(error) && error.cause).toBeInstanceOf(UnexpectedReply);
    expect(error).toMatchObject({ cause: { reply: 'QUEUED', message: expect.stringContaining('"QUEUED"') } });
  };

  const KINDS = {
    plain: (service: LockService) => service.getLock('a'),
    fair: (service: LockService) => service.getFairLock('a'),
    read: (service: LockService) => service.getReadWriteLock('a').read,
    write: (service: LockService) => service.getReadWriteLock('a').write,
    semaphore: (service: LockService) => service.getSemaphore('a', 2),
    multi: (service: LockService) => service.getMultiLock([service.getLock('a'), service.getLock('b')]),
  };

  it.each(Object.entries(KINDS))('no %s lock is granted, and it is taken back', async (_, kindOf) => {
    const lock = kindOf(locks);
    await shared.multi({ pipeline: false });
    await unavailable(lock.acquire({ waitTime: 100 }));
    await unavailable(lock.tryAcquire());
    expect(locks.leases()).toEqual([]);
    const ran = (await shared.exec())!;
    // It was granted when the transaction ran, and its release came behind it.
    expect(ran.filter(([error]) => error !== null)).toEqual([]);
    expect(ran.length).toBeGreaterThan(3);
    await until(async () => (await lockKeys(redis)).length === 0);
    await (await lock.acquire({ waitTime: 1_000 })).release();
  });

  it('neither what is held nor what is free is known', async () => {
    const lease = await locks.acquire('held');
    await shared.multi({ pipeline: false });
    await unavailable(locks.inspect('held'));
    await unavailable(locks.getLock('held').isLocked());
    await unavailable(locks.getLock('held').remainingTime());
    await unavailable(locks.forceRelease('free'));
    await shared.exec();
    expect(await locks.inspect('held')).toMatchObject({ holders: [{ owner: lease.owner }] });
    await lease.release();
  });

  it('a lease is neither lost nor prolonged, and its release is repeated', async () => {
    const lease = await locks.acquire('held', { leaseTime: 300_000 });
    await shared.multi({ pipeline: false });
    await expect(lease.extend(600_000)).rejects.toMatchObject({
      code: expect.not.stringMatching('LOCK_LOST'),
    });
    expect(lease.held).toBe(true);
    expect(lease.remainingTime()).toBeLessThan(300_000);
    await lease.release();
    await shared.exec();
    await until(async () => (await redis.exists('lock:held')) === 0);
  });
});
