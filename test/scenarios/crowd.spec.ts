import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { LockService } from '../../lib/index.js';
import type { RedisServer } from '../support/redis-server.js';
import type { HoldRecord, Worker } from '../support/worker.js';
import { TestEnvironment } from '../support/test-environment.js';
import { longestGap, overlaps, tokensGrow } from './history.js';
import { lockKeys } from '../support/keys.js';

describe('A crowd', () => {
  const environment = new TestEnvironment();
  let server: RedisServer;
  let locks: LockService;
  let workers: Worker[];

  beforeAll(async () => {
    server = await environment.server();
    locks = environment.service({ connection: server.url });
    workers = await environment.workers(4, { url: server.url });
  });

  afterAll(() => environment.end());

  /** So many waiters in each of some processes, all at once. */
  const race = async (
    runners: readonly Worker[],
    name: string,
    each: number,
    options: object,
    holdMs: number,
  ) =>
    (
      await Promise.all(
        runners.map((worker) => worker.call<HoldRecord[]>('race', name, each, options, holdMs)),
      )
    ).flat();

  it('10,000 fresh locks are taken and released one after another, with two commands each', async () => {
    await locks.inspect('warm-up');
    await server.resetCommandCalls();
    for (let n = 0; n < 10_000; n++) await (await locks.acquire(`fresh:${String(n)}`)).release();
    expect((await server.commandCalls()).evalsha).toBe(20_000);
    expect(await lockKeys(server.client(), 'lock:fresh:*')).toEqual([]);
  }, 60_000);

  it('1,000 of one process try for 10 ms: exactly one wins', async () => {
    await locks.inspect('warm-up');
    const leases = await Promise.all(
      Array.from({ length: 1_000 }, () => locks.tryAcquire('one', { waitTime: 10, leaseTime: 10_000 })),
    );
    expect(leases.filter((lease) => lease !== null)).toHaveLength(1);
  });

  it('1,000 of three processes try for 10 ms: exactly one wins', async () => {
    await Promise.all(workers.map((worker) => worker.call('forceRelease', 'warm-up')));
    const leases = await Promise.all(
      Array.from({ length: 1_000 }, (_, n) =>
        workers[n % 3]!.call('tryAcquire', 'one-of-three', { waitTime: 10, leaseTime: 10_000 }),
      ),
    );
    expect(leases.filter((lease) => lease !== null)).toHaveLength(1);
  });

  it.each([
    ['one process', 1, 100],
    ['four processes', 4, 25],
  ])('100 of %s wait up to 10 s and release: all win, never two at once', async (title, processes, each) => {
    const records = await race(workers.slice(0, processes), `all ${title}`, each, { waitTime: 10_000 }, 10);
    expect(records).toHaveLength(100);
    expect(overlaps(records)).toEqual([]);
    expect(tokensGrow(records)).toBe(true);
    expect(records.filter(({ lost }) => lost)).toEqual([]);
  });

  it.each([
    ['with hand-off within a process', 16],
    ['with every hand-over through Redis', 0],
  ])(
    '30 of three processes storm one lock 50 times, %s: it never lies idle for two seconds',
    async (_, localHandoff) => {
      const stormers = await environment.workers(3, { url: server.url, service: { localHandoff } });
      const gaps: number[] = [];
      for (let run = 0; run < 50; run++) {
        const records = await race(stormers, 'storm', 10, { waitTime: Infinity }, 1);
        expect(records).toHaveLength(30);
        expect(overlaps(records)).toEqual([]);
        expect(tokensGrow(records)).toBe(true);
        gaps.push(longestGap(records));
      }
      // A wake-up that is lost costs the lease of 30 s.
      expect(Math.max(...gaps)).toBeLessThan(2_000);
    },
    60_000,
  );
});
