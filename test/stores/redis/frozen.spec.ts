import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { isLockUnavailableError, type LockService } from '../../../lib/index.js';
import { TestEnvironment } from '../../support/test-environment.js';
import { until } from '../../scenarios/until.js';
import { lockKeys } from '../../support/keys.js';

const LEASE = 4_000;

const environment = TestEnvironment.ofEach();

it('Redis is frozen for twice the lease: holders are told, nothing hangs, and all recovers by itself', async () => {
  const server = await environment.server();
  const client = new Redis(server.url, { maxRetriesPerRequest: null });
  environment.add(() => {
    client.disconnect();
  });
  const services = [server.url, client].map((connection) =>
    environment.service({ connection, leaseTime: LEASE, waitTime: 1_000 }),
  );
  const locksOf = (locks: LockService, prefix: number) => [
    ...Array.from({ length: 10 }, (_, n) => locks.getLock(`plain:${String(prefix)}:${String(n)}`)),
    locks.getFairLock(`fair:${String(prefix)}`),
    locks.getReadWriteLock(`write:${String(prefix)}`).write,
    locks.getSemaphore(`semaphore:${String(prefix)}`, 2),
  ];
  const all = services.flatMap(locksOf);
  const leases = await Promise.all(all.map((lock) => lock.acquire({ waitTime: 60_000 })));
  await sleep(LEASE / 2); // a renewal has been

  server.freeze();
  const frozen = performance.now();
  await sleep(20); // what was on its way is here
  const ends = leases.map(({ signal }) => once(signal, 'abort'));
  const attempts = services.flatMap((locks) => [
    locks.acquire('asked'),
    locks.tryAcquire('tried'),
    locks.inspect('plain:0:0'),
    locks.getFairLock('queued').acquire(),
  ]);
  for (const { reason, status } of (await Promise.allSettled(attempts)) as PromiseRejectedResult[]) {
    expect(status).toBe('rejected');
    expect(isLockUnavailableError(reason)).toBe(true);
  }
  await Promise.all(ends);
  for (const lease of leases) {
    expect(lease.held).toBe(false);
    expect(lease.signal.reason).toMatchObject({ reason: 'unreachable' });
  }
  const waiting = all.map((lock) => lock.acquire({ waitTime: 60_000 }));
  await sleep(Math.max(0, 2 * LEASE - (performance.now() - frozen)));
  server.thaw();
  const next = await Promise.all(waiting);
  for (const lease of next) expect(lease.held).toBe(true);
  await sleep(LEASE);
  for (const lease of next) expect(lease.held).toBe(true);
  for (const lease of next) await lease.release();
  await until(async () => (await lockKeys(server.client())).length === 0);
});
