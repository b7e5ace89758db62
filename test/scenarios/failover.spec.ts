import { describe, expect, it } from '@jest/globals';
import type { Lock, LockService } from '../../lib/index.js';
import { inWorld } from '../world/index.js';

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
