import { hostname } from 'node:os';
import { beforeAll, describe, expect, it } from '@jest/globals';
import type { LockService } from '../../../lib/index.js';
import { TestEnvironment } from '../../support/test-environment.js';
import { until } from '../../scenarios/until.js';
import type { Worker } from '../../support/worker.js';
import { serverOfAll } from '../../support/test-servers.js';

describe('Inspecting a lock', () => {
  const environment = TestEnvironment.ofAll();
  const server = serverOfAll();
  let locks: LockService;
  let worker: Worker;

  beforeAll(async () => {
    locks = environment.service({ connection: server.url });
    worker = await environment.worker({ url: server.url });
  });

  /** By the clock of the server, as `since` is. */
  const serverTime = async () => {
    const [seconds, microseconds] = await server.client().time();
    return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000);
  };

  it('tells its own holder, since when and for how long', async () => {
    const before = await serverTime();
    const lease = await locks.acquire('own', { leaseTime: 20_000 });
    const after = await serverTime();
    const state = await locks.inspect('own');
    expect(state).toMatchObject({
      name: 'own',
      kind: 'lock',
      holders: [
        {
          owner: lease.owner,
          label: `${hostname()}:${String(process.pid)}`,
          local: true,
          since: expect.any(Date),
          remainingTime: expect.any(Number),
        },
      ],
      remainingTime: state?.holders[0]?.remainingTime,
      fencingToken: lease.fencingToken,
      waiters: { local: 0, processes: 0 },
    });
    const since = state?.holders[0]?.since?.getTime();
    expect(since).toBeGreaterThanOrEqual(before);
    expect(since).toBeLessThanOrEqual(after);
    expect(state?.remainingTime).toBeGreaterThan(10_000);
    expect(state?.remainingTime).toBeLessThanOrEqual(20_000);
    await lease.release();
  });

  it('tells a holder elsewhere, and the waiters here and there', async () => {
    const { id, owner, fencingToken } = await worker.call<{
      id: number;
      owner: string;
      fencingToken: number;
    }>('acquire', 'elsewhere');
    const waiting = Promise.all([1, 2, 3].map(() => locks.using('elsewhere', () => undefined)));
    await until(async () => (await locks.inspect('elsewhere'))?.waiters.processes === 1);
    expect(await locks.inspect('elsewhere')).toMatchObject({
      holders: [{ owner, local: false, since: expect.any(Date) }],
      fencingToken,
      waiters: { local: 3, processes: 1 },
    });
    await worker.call('release', id);
    await waiting;
    expect(await locks.inspect('elsewhere')).toBeNull();
  });

  it('does not take the last holder of ours for one that is not of this package', async () => {
    const lease = await locks.acquire('foreign-now');
    await lease.release();
    const key = 'lock:foreign-now';
    await server.client().multi().hset(key, 'java:1', 1).pexpire(key, 60_000).exec();
    const state = await locks.inspect('foreign-now');
    expect(state?.holders).toMatchObject([
      {
        owner: 'java:1',
        label: undefined,
        local: false,
        since: undefined,
        remainingTime: expect.any(Number),
      },
    ]);
    expect(state?.fencingToken).toBe(lease.fencingToken);
  });

  it('tells the last token that was given out, also when the lock was handed on within the process', async () => {
    const first = await locks.acquire('handed-on');
    const next = locks.acquire('handed-on');
    await first.release();
    const second = await next;
    expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
    expect((await locks.inspect('handed-on'))?.fencingToken).toBe(second.fencingToken);
    await second.release();
  });
});
