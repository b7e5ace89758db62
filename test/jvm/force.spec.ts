import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { LockLostError, type LockService } from '../../lib/index.js';
import { now } from '../scenarios/history.js';
import { until } from '../scenarios/until.js';
import { describeOnJvm } from './describe-jvm.js';
import type { Jvm } from './jvm.js';
import { Stage } from './stage.js';

/** ms */
const LEASE = 300_000;
const SOON = LEASE / 4;

describeOnJvm('Redisson on a JVM and this package: a lock is taken away from the other', () => {
  const stage = new Stage();
  let jvm: Jvm;
  let locks: LockService;

  beforeAll(async () => {
    const { url } = await stage.open();
    jvm = await stage.jvm();
    locks = stage.service({ connection: url, keyPrefix: '', leaseTime: LEASE, waitTime: LEASE });
  });

  afterAll(() => stage.end());

  it('forceUnlock frees a lock of this package, once, and wakes a thread that waits', async () => {
    const java = jvm.thread('main');
    await locks.acquire('forced there');
    const thread = jvm.thread('waits').lock('forced there');
    await stage.listeners('forced there');
    const forced = now();
    expect(await java.forceUnlock('forced there')).toBe(true);
    expect((await thread) - forced).toBeLessThan(SOON);
    expect(await java.forceUnlock('forced there')).toBe(true);
    expect(await java.forceUnlock('forced there')).toBe(false);
  });

  it('a waiter in another process gets a lock of this package after a forceUnlock, when its holder has learnt of it', async () => {
    const leaseTime = 30_000;
    const { url } = await stage.open();
    const waiter = stage.service({ connection: url, keyPrefix: '', waitTime: LEASE });
    const lost = await locks.acquire('forced in line', { leaseTime, renew: true });
    const waits = waiter.acquire('forced in line');
    await sleep(1_000);
    const forced = now();
    expect(await jvm.thread('main').forceUnlock('forced in line')).toBe(true);
    const lease = await waits;
    // The holder learns of it within a third.
    expect(now() - forced).toBeLessThan((2 * leaseTime) / 3);
    await lease.release();
    await until(() => !lost.held);
  });

  it.each([
    ['renewed', true],
    ['fixed', false],
  ])('the holder of a %s lease learns of a forceUnlock within a third of it', async (title, renew) => {
    const leaseTime = 30_000;
    const lease = await locks.acquire(`told: ${title}`, { leaseTime, renew });
    const forced = now();
    expect(await jvm.thread('main').forceUnlock(`told: ${title}`)).toBe(true);
    await until(() => lease.signal.aborted);
    // A third, and as much again for a busy machine; the lease itself would have gone on.
    expect(now() - forced).toBeLessThan((2 * leaseTime) / 3);
    expect(lease.signal.reason).toBeInstanceOf(LockLostError);
    expect(lease.signal.reason).not.toMatchObject({ reason: 'expired' });
    expect(lease.held).toBe(false);
  });

  it('forceRelease takes a lock from a thread, which cannot unlock it any more, and wakes waiters', async () => {
    const java = jvm.thread('main');
    await java.lock('forced here');
    const thread = jvm.thread('waits').lock('forced here');
    await stage.listeners('forced here');
    const forced = now();
    expect(await locks.forceRelease('forced here')).toBe(true);
    expect((await thread) - forced).toBeLessThan(SOON);
    expect(await java.isHeld('forced here')).toBe(false);
    await expect(java.unlock('forced here')).rejects.toThrow('IllegalMonitorStateException');
    expect(await jvm.thread('waits').isHeld('forced here')).toBe(true);
    await jvm.thread('waits').unlock('forced here');
  });
});
