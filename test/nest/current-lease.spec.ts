import 'reflect-metadata';
import { describe, expect, it } from '@jest/globals';
import { assertLocked, currentLease, LockService } from '../../lib/index.js';
import { deferred } from '../doubles/deferred.js';
import { DecoratedApp } from './decorated-app.js';
import { useVirtualTime } from '../support/virtual-time.js';

useVirtualTime();

const nest = DecoratedApp.ofEach();

describe('currentLease and assertLocked', () => {
  it('know the innermost lease, and every lock that is held', async () => {
    const jobs = await nest.servedWith({}, async () => {
      const locks = nest.locks;
      expect(currentLease()?.name).toBe('job');
      await locks.using('nested', () => {
        expect(currentLease()?.name).toBe('nested');
        assertLocked('job');
        assertLocked('nested');
      });
      expect(currentLease()?.name).toBe('job');
      assertLocked();
      expect(() => {
        assertLocked('nested');
      }).toThrow(/"nested"/);
    });
    await jobs.run();
    expect(currentLease()).toBeUndefined();
    expect(() => {
      assertLocked();
    }).toThrow(expect.objectContaining({ code: 'LOCK_CONFIG' }));
  });

  describe('in code that runs on after its lock, within another lock', () => {
    /** Not awaited by the inner callback, which has ended when it runs. */
    const leftBehind = (locks: LockService, work: () => Promise<unknown>): Promise<unknown> =>
      locks.using('outer', async () => {
        const ended = deferred();
        let left: Promise<unknown> | undefined;
        await locks.using('inner', () => {
          left = ended.promise.then(work);
        });
        ended.resolve();
        return await left;
      });

    it('know no lease, but the outer lock', async () => {
      const locks = (await nest.boot()).get(LockService);
      await leftBehind(locks, async () => {
        expect(currentLease()).toBeUndefined();
        assertLocked('outer');
        expect(() => {
          assertLocked('inner');
        }).toThrow(expect.objectContaining({ code: 'LOCK_CONFIG' }));
        await locks.using('third', () => {
          expect(currentLease()?.name).toBe('third');
        });
        expect(currentLease()).toBeUndefined();
      });
    });
  });

  it('throw LockLostError when the lease is gone', async () => {
    const jobs = await nest.servedWith({}, async () => {
      await nest.locks.forceRelease('job');
      expect(() => {
        assertLocked('job');
      }).toThrow(expect.objectContaining({ code: 'LOCK_LOST' }));
      expect(() => {
        assertLocked();
      }).toThrow(expect.objectContaining({ code: 'LOCK_LOST' }));
      await nest.locks.using('nested', () => {
        expect(() => {
          assertLocked('job');
        }).toThrow(expect.objectContaining({ code: 'LOCK_LOST' }));
      });
    });
    await jobs.run();
  });

  it('know a multi-lock by its own name, too', async () => {
    const locks = (await nest.boot()).get(LockService);
    await locks.using(['a', 'b'], async ({ name }) => {
      assertLocked('a');
      assertLocked(name);
      await locks.using('nested', () => {
        assertLocked(name);
      });
      await locks.forceRelease('b');
      expect(() => {
        assertLocked(name);
      }).toThrow(expect.objectContaining({ code: 'LOCK_LOST' }));
    });
  });
});
