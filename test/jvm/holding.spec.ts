import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { LockService } from '../../lib/index.js';
import { now } from '../scenarios/history.js';
import { describeOnJvm } from './describe-jvm.js';
import type { Jvm } from './jvm.js';
import type { JvmThread } from './jvm-thread.js';
import { Stage } from './stage.js';

const WATCHDOG = 2_400;

describeOnJvm('Redisson on a JVM and this package: a hold of one excludes the other', () => {
  const stage = new Stage();
  let jvm: Jvm;
  let java: JvmThread;
  let locks: LockService;

  beforeAll(async () => {
    const { url } = await stage.open();
    jvm = await stage.jvm(WATCHDOG);
    java = jvm.thread('main');
    locks = stage.service({ connection: url, keyPrefix: '', leaseTime: WATCHDOG });
  });

  afterAll(() => stage.end());

  it('both read the same clock, in which the times of these tests are', async () => {
    const [before, there, after] = [now(), await java.now(), now()];
    expect(before).toBeLessThanOrEqual(there);
    expect(there).toBeLessThanOrEqual(after);
  });

  it.each([
    'order:1',
    'with spaces and\ttabs',
    'ünïcödé 鎖 🔒',
    'percent%20 plus+ "quotes" \\ $',
    '{tag}',
    'a{tag}b:c',
    'open{ brace',
    'closed} brace',
    '{}',
  ])('under the name %j', async (name) => {
    const lease = await locks.acquire(name);
    expect(await java.isLocked(name)).toBe(true);
    expect(await java.tryLock(name)).toBe(false);
    await lease.release();
    expect(await java.isLocked(name)).toBe(false);

    expect(await java.tryLock(name)).toBe(true);
    expect(await locks.tryAcquire(name)).toBeNull();
    expect(await locks.inspect(name)).toMatchObject({ kind: 'lock', holders: [{ local: false }] });
    await java.unlock(name);
    expect(await locks.inspect(name)).toBeNull();
  });

  it('each sees the time that the other has left', async () => {
    const lease = await locks.acquire('left:ours', { leaseTime: 60_000 });
    const left = await java.remainTimeToLive('left:ours');
    expect(left).toBeGreaterThanOrEqual(lease.remainingTime());
    expect(left).toBeLessThanOrEqual(60_000);
    await lease.release();

    await java.lock('left:theirs', 60_000);
    const seen = (await locks.inspect('left:theirs'))?.remainingTime ?? 0;
    expect(seen).toBeGreaterThanOrEqual(await java.remainTimeToLive('left:theirs'));
    expect(seen).toBeLessThanOrEqual(60_000);
    // Redisson listens to no requests.
    expect(await locks.requestRelease('left:theirs')).toBe(0);
    await java.unlock('left:theirs');
  });

  it('a hold that Redisson has re-entered lasts until its last unlock', async () => {
    await java.lock('reentrant:theirs');
    await java.lock('reentrant:theirs');
    expect(await java.holdCount('reentrant:theirs')).toBe(2);
    expect(await locks.tryAcquire('reentrant:theirs')).toBeNull();
    await java.unlock('reentrant:theirs');
    expect(await locks.tryAcquire('reentrant:theirs')).toBeNull();
    await java.unlock('reentrant:theirs');
    const lease = await locks.tryAcquire('reentrant:theirs');
    expect(lease).not.toBeNull();
    await lease?.release();
  });

  it('a hold that is re-entered here lasts until its last release', async () => {
    await locks.using('reentrant:ours', async () => {
      await locks.using('reentrant:ours', async () => {
        expect(await java.tryLock('reentrant:ours')).toBe(false);
      });
      expect(await java.tryLock('reentrant:ours')).toBe(false);
    });
    expect(await java.tryLock('reentrant:ours')).toBe(true);
    await java.unlock('reentrant:ours');
  });

  it('the watchdog of each renews beside the other', async () => {
    await java.lock('renewed:theirs');
    const lease = await locks.acquire('renewed:ours');
    const begun = now();
    while (now() - begun < 2 * WATCHDOG) {
      expect(await locks.tryAcquire('renewed:theirs')).toBeNull();
      expect(await java.tryLock('renewed:ours')).toBe(false);
      await sleep(100);
    }
    expect(await java.isHeld('renewed:theirs')).toBe(true);
    expect(lease.held).toBe(true);
    await java.unlock('renewed:theirs');
    await lease.release();
  });

  it("a lease of Redisson's without a watchdog ends, and its thread holds nothing then", async () => {
    const asked = now();
    await java.lock('fixed:theirs', 1_500);
    const lease = await locks.acquire('fixed:theirs');
    expect(now() - asked).toBeGreaterThanOrEqual(1_500);
    expect(await java.isHeld('fixed:theirs')).toBe(false);
    await expect(java.unlock('fixed:theirs')).rejects.toThrow('IllegalMonitorStateException');
    expect(lease.held).toBe(true);
    await lease.release();
  });

  it('a fixed lease of this package ends, and its holder holds nothing then', async () => {
    const asked = now();
    const lease = await locks.acquire('fixed:ours', { leaseTime: 1_500 });
    const granted = await java.lock('fixed:ours');
    expect(granted - asked).toBeGreaterThanOrEqual(1_500);
    expect(lease.held).toBe(false);
    await lease.release();
    expect(await java.isHeld('fixed:ours')).toBe(true);
    await java.unlock('fixed:ours');
  });

  it('a wait runs out on either side, and leaves nothing behind that keeps others away', async () => {
    const lease = await locks.acquire('busy:ours');
    const asked = now();
    expect(await java.tryLock('busy:ours', { wait: 700 })).toBe(false);
    expect(now() - asked).toBeGreaterThanOrEqual(700);
    await lease.release();

    await java.lock('busy:theirs');
    const begun = now();
    expect(await locks.tryAcquire('busy:theirs', { waitTime: 700 })).toBeNull();
    expect(now() - begun).toBeGreaterThanOrEqual(699);
    await java.unlock('busy:theirs');

    for (const name of ['busy:ours', 'busy:theirs']) {
      const next = await locks.tryAcquire(name);
      expect(next).not.toBeNull();
      await next?.release();
      expect(await java.tryLock(name)).toBe(true);
      await java.unlock(name);
    }
  });
});
