import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { until } from '../scenarios/until.js';
import { RedisServer } from './redis-server.js';
import { Worker, type HoldRecord } from './worker.js';

const now = () => Number(process.hrtime.bigint()) / 1e6;

describe('Worker', () => {
  let server: RedisServer;
  let worker: Worker;

  beforeAll(async () => {
    server = await RedisServer.start();
  });

  afterAll(async () => {
    await server.stop();
  });

  beforeEach(async () => {
    await server.client().flushall();
    worker = await Worker.start({ url: server.url, service: { waitTime: Infinity } });
  });

  afterEach(async () => {
    await worker.kill();
  });

  it('holds and releases locks in a process of its own', async () => {
    expect(worker.pid).not.toBe(process.pid);
    const lease = await worker.call<{ id: number; owner: string }>('acquire', 'name');
    expect(await server.client().hgetall('lock:name')).toEqual({ [lease.owner]: '1' });
    expect(await worker.call('tryAcquire', 'name')).toBeNull();
    await worker.call('extend', lease.id, 10_000);
    expect(await worker.call('state', lease.id)).toMatchObject({ held: true, aborted: false });
    await worker.call('release', lease.id);
    expect(await worker.call('state', lease.id)).toMatchObject({ held: false, remainingTime: 0 });
    await worker.stop();
  });

  it('hands errors over', async () => {
    await worker.call('acquire', 'name');
    const error = await worker.call('acquire', 'name', { waitTime: 10 }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({
      name: 'LockTimeoutError',
      code: 'LOCK_TIMEOUT',
      message: expect.stringContaining('busy'),
    });
  });

  it('tells why a lease was lost', async () => {
    const { id } = await worker.call<{ id: number }>('acquire', 'name', { leaseTime: 20 });
    await until(async () => (await worker.call<{ aborted: boolean }>('state', id)).aborted);
    expect(await worker.call('state', id)).toEqual({
      held: false,
      remainingTime: 0,
      aborted: true,
      reason: 'expired',
    });
  });

  it('keeps times that can be compared with those of this process', async () => {
    const before = now();
    const records = await worker.call<HoldRecord[]>('race', 'name', 3, {}, 5);
    records.sort((a, b) => a.granted - b.granted);
    const times = [before, ...records.flatMap(({ granted, released }) => [granted, released]), now()];
    expect(times).toHaveLength(8);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
  });

  it('answers nothing while its event loop is blocked or it is stopped', async () => {
    const called = now();
    void worker.call('blockEventLoop', 100);
    await worker.call('forceRelease', 'name');
    expect(now() - called).toBeGreaterThan(100);

    worker.freeze();
    const answer = worker.call('forceRelease', 'name');
    expect(await Promise.race([answer, sleep(100, 'silence')])).toBe('silence');
    worker.thaw();
    expect(await answer).toBe(false);
  });

  it('leaves its locks behind when it is killed, and fails the calls that are open', async () => {
    await worker.call('acquire', 'name');
    const open = worker.call('acquire', 'name');
    await Promise.all([expect(open).rejects.toThrow('has ended'), worker.kill()]);
    expect(await server.client().exists('lock:name')).toBe(1);
    await expect(worker.call('acquire', 'name')).rejects.toThrow();
    await worker.stop();
  });

  it('notices what keeps it alive after its shutdown', async () => {
    const busy = await Worker.start({ url: server.url, preload: 'setInterval(() => undefined, 1_000)' });
    await expect(busy.stop(300)).rejects.toThrow('did not exit by itself');
  });

  it('says why it did not start', async () => {
    const options = { url: server.url, service: { leaseTime: -1 } };
    await expect(Worker.start(options)).rejects.toThrow('leaseTime');
  });
});
