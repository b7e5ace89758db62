import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { isLockTimeoutError, LockTimeoutError, type LockService } from '../../../lib/index.js';
import type { RedisServer } from '../../support/redis-server.js';
import type { HoldRecord, Worker } from '../../support/worker.js';
import { TestEnvironment } from '../../support/test-environment.js';
import { now, overlaps } from '../history.js';
import { until } from '../until.js';

/** ms: far less than the 30 s that a lease lasts, so whoever was this quick was woken by the release. */
const WELL_BEFORE_THE_TTL = 5_000;

describe('A holds the lock', () => {
  const environment = new TestEnvironment();
  let url: string;
  let a: LockService;
  let b: Worker;
  let c: Worker;

  beforeAll(async () => {
    ({ url } = await environment.server());
    a = environment.service({ connection: url });
    b = await environment.worker({ url });
    c = await environment.worker({ url });
  });

  afterAll(() => environment.end());

  const processesWait = (name: string, count: number) =>
    until(async () => (await a.inspect(name))?.waiters.processes === count);

  it('B, in another process, waits and gets it as soon as A releases it', async () => {
    const lease = await a.acquire('hand-over');
    const waiting = b.call<HoldRecord>('holdFor', 'hand-over', {}, 0);
    await processesWait('hand-over', 1);
    const released = now();
    await lease.release();
    const { granted, fencingToken } = await waiting;
    expect(granted).toBeGreaterThan(released);
    expect(granted - released).toBeLessThan(WELL_BEFORE_THE_TTL);
    expect(fencingToken).toBeGreaterThan(lease.fencingToken);
  });

  it('B and C race for it, and both get it in turn', async () => {
    const lease = await a.acquire('race');
    const race = [b, c].map((worker) => worker.call<HoldRecord>('holdFor', 'race', {}, 200));
    await processesWait('race', 2);
    const released = now();
    await lease.release();
    const records = await Promise.all(race);
    expect(overlaps(records)).toEqual([]);
    for (const { granted, lost } of records) {
      expect(granted).toBeGreaterThan(released);
      expect(granted - released).toBeLessThan(WELL_BEFORE_THE_TTL);
      expect(lost).toBe(false);
    }
  });

  it('B gives up with LockTimeoutError when the wait time is over before the lease', async () => {
    const lease = await a.acquire('secret-name', { leaseTime: 2_000 });
    const other = environment.service({ connection: url });
    const asked = now();
    const error: unknown = await other
      .acquire('secret-name', { waitTime: 1_000 })
      .catch((reason: unknown) => reason);
    const waited = now() - asked;
    expect(error).toBeInstanceOf(LockTimeoutError);
    if (!isLockTimeoutError(error)) return;
    expect(error).toMatchObject({ key: 'secret-name', holder: lease.owner, status: 409, expose: false });
    expect(error.message).toMatch(
      /^The lock "secret-name" is busy after a wait of \d+ ms: held by \S+:\d+ of another LockService/,
    );
    // A stranger may read it.
    const told = [error.publicMessage, JSON.stringify(error.getResponse())].join();
    expect(told).not.toMatch(/secret|lock:|127|localhost|redis|[\da-f]{8}-/i);
    expect(waited).toBeGreaterThanOrEqual(999);
    expect(Math.abs(error.waited - waited)).toBeLessThan(500);
    // It was too impatient, but not wrong: with more time it gets in when the lease ends.
    await (await other.acquire('secret-name', { waitTime: 10_000 })).release();
    expect(lease.held).toBe(false);
  });

  it('B gets null instead when it only tries', async () => {
    const lease = await a.acquire('try', { leaseTime: 2_000 });
    const asked = now();
    expect(await b.call('tryAcquire', 'try')).toBeNull();
    expect(await b.call('tryAcquire', 'try', { waitTime: 1_000 })).toBeNull();
    expect(now() - asked).toBeGreaterThanOrEqual(999);
    expect(await b.call('tryAcquire', 'try', { waitTime: 10_000 })).not.toBeNull();
    expect(lease.held).toBe(false);
  });

  it('B does not get it later when it has given up', async () => {
    const lease = await a.acquire('gone');
    expect(await b.call('tryAcquire', 'gone', { waitTime: 100 })).toBeNull();
    await lease.release();
    await c.call('holdFor', 'gone', { waitTime: 0 }, 0);
    expect(await a.inspect('gone')).toBeNull();
  });
});

describe('One scope takes the lock twice', () => {
  const environment = new TestEnvironment();
  let server: RedisServer;
  let locks: LockService;

  beforeAll(async () => {
    server = await environment.server();
    locks = environment.service({ connection: server.url });
  });

  afterAll(() => environment.end());

  it.each([
    ['with a renewed lease', {}],
    ['with a lease of 1 s', { leaseTime: 1_000 }],
  ])('%s: both succeed, and the last release frees it', async (_, options) => {
    const lock = locks.getLock('twice');
    await lock.using(options, async (outer) => {
      const inner = await lock.acquire({ ...options, waitTime: 0 });
      expect(lock.holdCount()).toBe(2);
      expect(inner.fencingToken).toBe(outer.fencingToken);
      expect(await server.client().hgetall('lock:twice')).toEqual({ [outer.owner]: '1' });
      await inner.release();
      expect(await lock.isLocked()).toBe(true);
      expect(outer.held).toBe(true);
    });
    expect(await lock.isLocked()).toBe(false);
  });

  it('without a scope the second is another owner, which has to wait', async () => {
    const lease = await locks.acquire('apart');
    expect(await locks.tryAcquire('apart')).toBeNull();
    await lease.release();
  });
});
