/**
 * Leases that no code can release. The number is that of a list of verified defects of lock libraries; what is tested is
 * that ours tells of it.
 *
 * 91  A wait that its caller abandoned (Promise.race) gets the lock, and a watchdog renews it for ever.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from '@jest/globals';
import type { LockEvent, LockService } from '../../../lib/index.js';
import { deferred } from '../../doubles/deferred.js';
import { Stage, until } from '../stage.js';

const stage = Stage.set();

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function observed(options?: Parameters<typeof stage.service>[0]): {
  locks: LockService;
  events: LockEvent[];
  abandoned: () => LockEvent[];
} {
  const locks = stage.service(options);
  const events: LockEvent[] = [];
  locks.events$.subscribe((event) => events.push(event));
  return { locks, events, abandoned: () => events.filter(({ type }) => type === 'abandoned') };
}

/** Resolves when the collector has found so many. */
async function collected(abandoned: () => LockEvent[], count = 1): Promise<void> {
  await until(async () => {
    // A collection is work, and the collector tells of it some time later.
    collectGarbage();
    await sleep(50);
    return abandoned().length >= count;
  });
}

/** Holds the lock until a caller that waits for it has given up, in the commonest way, and lets that one get it. */
async function raced(locks: LockService, name: string): Promise<void> {
  const gaveUp = deferred();
  const holder = locks.using(name, () => gaveUp.promise);
  await Promise.race([locks.acquire(name, { label: 'export' }), sleep(20)]);
  gaveUp.resolve();
  await holder;
}

describe('a lease that its caller has thrown away', () => {
  it('after a race with a timeout is an event with the place of the call, and one warning (pitfall 91)', async () => {
    const { locks, events, abandoned } = observed();
    await raced(locks, 'export');
    await collected(abandoned);
    const [event] = abandoned();
    expect(event).toMatchObject({ name: 'export', label: 'export', owner: expect.any(String) as unknown });
    expect(event).toMatchObject({ at: expect.stringMatching(/abandoned\.spec\.ts:\d+:\d+$/) as unknown });
    await raced(locks, 'another');
    await collected(abandoned, 2);
    const warnings = events.filter((each) => each.type === 'warning' && each.code === 'lease-abandoned');
    expect(warnings).toHaveLength(1);
    for (const cure of ['waitTime', 'signal', 'using', 'maxHoldTime'])
      expect(warnings[0]).toMatchObject({ message: expect.stringContaining(cure) as unknown });
  });

  it('keeps the lock, and the service lists it (pitfall 91)', async () => {
    const { locks, abandoned } = observed();
    await locks.acquire('export').then(({ signal, releaseRequested }) => {
      // What the package itself listens to keeps no caller's lease.
      expect([signal.aborted, releaseRequested.aborted]).toEqual([false, false]);
    });
    await collected(abandoned);
    const [lease] = locks.leases();
    expect([lease?.name, lease?.held]).toEqual(['export', true]);
    expect(await locks.tryAcquire('export')).toBeNull();
    await lease?.release();
    expect(await locks.inspect('export')).toBeNull();
  });

  it('is none that is reachable, released, lost, fixed, bounded by maxHoldTime or held by using (pitfall 91)', async () => {
    const { locks, abandoned } = observed();
    const bounded = observed({ maxHoldTime: 60_000 });
    await bounded.locks.acquire('bounded');
    const kept = await locks.acquire('kept');
    const registered = [
      locks.acquire('released').then(async (lease) => {
        await sleep(20);
        await lease.release();
      }),
      locks.acquire('fixed', { leaseTime: 60_000 }).then(() => undefined),
      locks.acquire('lost').then(() => undefined),
    ];
    await registered[2];
    await locks.forceRelease('lost');
    await locks.using('used', async () => {
      await Promise.all(registered);
      await raced(locks, 'told');
      await collected(abandoned);
    });
    collectGarbage();
    await sleep(20);
    expect(abandoned()).toEqual([expect.objectContaining({ name: 'told' })]);
    expect(bounded.abandoned()).toEqual([]);
    expect(locks.leases()).toContain(kept);
    await kept.release();
  });
});
