import 'reflect-metadata';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type DistributedLockOptions, LockTimeoutError } from '../../lib/index.js';
import { DecoratedApp } from './decorated-app.js';

let nest: DecoratedApp;

beforeEach(() => {
  nest = new DecoratedApp();
});

afterEach(() => nest.close());

describe('onBusy', () => {
  const whileBusy = async (options: DistributedLockOptions) => {
    const jobs = await nest.servedWith({ waitTime: 0, ...options });
    const lease = await nest.locks.acquire('job');
    return { call: jobs.run(), release: () => lease.release() };
  };

  it('throws LockTimeoutError', async () => {
    const { call } = await whileBusy({});
    await expect(call).rejects.toBeInstanceOf(LockTimeoutError);
    expect(nest.entries.total).toBe(0);
  });

  it('skips', async () => {
    const { call } = await whileBusy({ onBusy: 'skip' });
    expect(await call).toBeUndefined();
    expect(nest.entries.total).toBe(0);
  });

  it('asks a function, with the keys and the error', async () => {
    const { call } = await whileBusy({ onBusy: ({ keys, error }) => `${keys.join()} ${error.code}` });
    expect(await call).toBe('job LOCK_TIMEOUT');
  });

  it('concerns its own lock only, not one that the method waits for', async () => {
    const jobs = await nest.servedWith({ onBusy: 'skip' }, () =>
      nest.locks.using('other', { waitTime: 0 }, () => 1),
    );
    await nest.locks.acquire('other');
    await expect(jobs.run()).rejects.toBeInstanceOf(LockTimeoutError);
  });

  it('does not hide a store that is away', async () => {
    const jobs = await nest.servedWith({ onBusy: 'skip', waitTime: 0 });
    await nest.locks.close();
    await expect(jobs.run()).rejects.toMatchObject({ code: 'LOCK_CLOSED' });
  });
});

describe('onLost', () => {
  const losing = () => nest.locks.forceRelease('job', { reason: 'stuck' }).then(() => 'result');

  it('leaves the result as it is', async () => {
    const jobs = await nest.servedWith({}, losing);
    expect(await jobs.run()).toBe('result');
  });

  it("'throw' turns success into LockLostError, with the result", async () => {
    const jobs = await nest.servedWith({ onLost: 'throw' }, losing);
    await expect(jobs.run()).rejects.toMatchObject({
      code: 'LOCK_LOST',
      reason: 'deleted',
      result: 'result',
      forced: { reason: 'stuck' },
      message: expect.stringMatching(/, taken away by ".+": "stuck"$/),
    });
  });

  it("'throw' learns of a loss from the release too", async () => {
    const jobs = await nest.servedWith({ onLost: 'throw' }, () => nest.store.forceRelease('job'));
    await expect(jobs.run()).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'deleted' });
  });

  it("'throw' does not replace the method's own error", async () => {
    const failure = new Error('business');
    const jobs = await nest.servedWith({ onLost: 'throw' }, () =>
      losing().then(() => Promise.reject(failure)),
    );
    await expect(jobs.run()).rejects.toBe(failure);
  });
});
