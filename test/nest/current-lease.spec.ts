import 'reflect-metadata';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { assertLocked, currentLease, LockService } from '../../lib/index.js';
import { DecoratedApp } from './decorated-app.js';

let nest: DecoratedApp;

beforeEach(() => {
  nest = new DecoratedApp();
});

afterEach(() => nest.close());

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
