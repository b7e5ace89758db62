import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from '@jest/globals';
import type { Lock, LockEvent, LockService } from '../../lib/index.js';
import { blockFor } from '../pitfalls/stage.js';
import { TestEnvironment } from '../support/test-environment.js';
import { serverOfAll } from '../support/test-servers.js';
import { inWorld } from '../world/index.js';
import { until } from './until.js';
import { loggerOfEach } from '../support/logger.js';

const REPLICA = { replica: true };

describe('After a failover, the lock of an owner whose release the new primary does not know', () => {
  it.each<[string, (locks: LockService) => Lock, boolean]>([
    ['a plain lock', (locks) => locks.getLock('k'), false],
    ['a plain lock that was waited for', (locks) => locks.getLock('k'), true],
    ['a fair lock', (locks) => locks.getFairLock('k'), false],
    ['a permit', (locks) => locks.getSemaphore('k', 1), false],
    ['a write', (locks) => locks.getReadWriteLock('k').write, false],
  ])('is given back once its process finds itself in the way: %s', (_, lockOf, isAwaited) =>
    inWorld(
      1,
      async ({ process, server, pass, now }) => {
        const [own, other] = [process(), process()];
        const before = isAwaited ? await lockOf(other.locks).acquire() : undefined;
        const waiting = lockOf(own.locks).acquire();
        await pass(50);
        await before?.release();
        const lease = await waiting;
        server.isolate();
        await lease.release();
        server.failOver();
        const [moment, next] = [now(), await lockOf(own.locks).acquire({ waitTime: 20_000 })];
        // Its lease is 30 s.
        expect(now() - moment).toBeLessThan(5_000);
        await next.release();
        expect(await other.locks.inspect('k')).toBeNull();
      },
      REPLICA,
    ),
  );

  it('is given back for each name that one command had taken', () =>
    inWorld(
      1,
      async ({ process, server, now }) => {
        const { locks } = process();
        const lease = await locks.acquire(['k', 'l', 'm']);
        server.isolate();
        await lease.release();
        server.failOver();
        const moment = now();
        for (const names of ['k', ['l', 'm']])
          await (await locks.acquire(names, { waitTime: 20_000 })).release();
        expect(now() - moment).toBeLessThan(5_000);
        for (const name of ['k', 'l', 'm']) expect(await locks.inspect(name)).toBeNull();
      },
      REPLICA,
    ));

  it('stays for its minHoldTime', () =>
    inWorld(
      1,
      async ({ process, server, now }) => {
        const { locks } = process();
        const moment = now();
        const lease = await locks.acquire('k', { minHoldTime: 6_000 });
        server.isolate();
        await lease.release();
        server.failOver();
        const next = await locks.acquire('k', { waitTime: 20_000 });
        expect(now() - moment).toBeGreaterThan(5_900);
        expect(now() - moment).toBeLessThan(10_000);
        await next.release();
      },
      REPLICA,
    ));
});

describe('A loss is logged once', () => {
  const environment = TestEnvironment.ofAll();
  const server = serverOfAll();
  let locks: LockService;
  let events: LockEvent[];
  const logger = loggerOfEach();

  beforeEach(() => {
    locks = environment.service({ connection: server.url, label: 'console' });
    events = [];
    locks.events$.subscribe((event) => events.push(event));
  });

  const logged = (level: 'warn' | 'error') => logger.lines(level).filter((line) => line.startsWith('Lost'));

  const lostEvents = () => events.filter(({ type }) => type === 'lost');

  const KINDS: [string, () => Lock][] = [
    ['plain', () => locks.getLock('plain')],
    ['fair', () => locks.getFairLock('fair')],
  ];

  it.each(KINDS)('%s: as a warning, where a fixed lease runs out', async (name, lockOf) => {
    const lease = await lockOf().acquire({ leaseTime: 300 });
    await until(() => lease.signal.aborted);
    expect(lostEvents()).toEqual([
      { type: 'lost', name, label: lease.label, owner: lease.owner, reason: 'expired' },
    ]);
    expect(logged('warn')).toEqual([`Lost the lock "${name}" (owner ${lease.owner}): expired`]);
    expect(logged('error')).toEqual([]);
  });

  it('as a warning, where a fixed lease that was waited for runs out', async () => {
    const holder = await locks.getFairLock('waited').acquire();
    const waiting = locks.getFairLock('waited').acquire({ leaseTime: 1_500 });
    await until(async () => (await locks.inspect('waited'))?.queue.length === 1);
    await holder.release();
    const lease = await waiting;
    await until(() => lease.signal.aborted);
    expect(logged('warn')).toHaveLength(1);
    expect(logged('error')).toEqual([]);
  });

  it('as an error, where a fixed lease ends before its time', async () => {
    const lease = await locks.getLock('deleted').acquire({ leaseTime: 60_000 });
    await locks.forceRelease('deleted', { reason: 'stuck' });
    expect(lease.held).toBe(false);
    const line = `Lost the lock "deleted" (owner ${lease.owner}): deleted, taken away by "console": "stuck"`;
    expect(logged('error')).toEqual([line]);
    expect(logger.lines('warn')).toContain('Took the lock "deleted" away from its holders: "stuck"');
    expect(logged('warn')).toEqual([]);
  });

  it('as an error, where a lease that is renewed runs out', async () => {
    const lease = await locks.acquire('stopped', { leaseTime: 900, renew: true });
    blockFor(1_000);
    expect(lease.held).toBe(false);
    await sleep(0);
    expect(logged('error')).toHaveLength(1);
    expect(logged('warn')).toEqual([]);
  });
});
