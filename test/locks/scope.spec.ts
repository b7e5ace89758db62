import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { assertLocked, type Lock, LockService, MemoryLockStore } from '../../lib/index.js';
import { pass, useVirtualTime } from '../support/virtual-time.js';

useVirtualTime();

let locks: LockService;

beforeEach(() => {
  locks = new LockService({ store: 'memory' });
});

afterEach(async () => {
  await locks.onApplicationShutdown();
});

describe('inside a scope', () => {
  it('re-enters, across awaits and functions, with the outer token', async () => {
    const lock = locks.getLock('a');
    await locks.using('a', async (outer) => {
      await pass(1);
      const again = async () => {
        const inner = await locks.acquire('a', { waitTime: 0 });
        expect(inner.fencingToken).toBe(outer.fencingToken);
        expect(inner.owner).toBe(outer.owner);
        expect(lock.holdCount()).toBe(2);
        await inner.release();
        expect(inner.held).toBe(false);
        expect(outer.held).toBe(true);
      };
      await again();
      expect(lock.holdCount()).toBe(1);
    });
    expect(lock.isHeld()).toBe(false);
  });

  it('emits one event for the acquisition and one for the release', async () => {
    const seen: string[] = [];
    locks.events$.subscribe((event) => seen.push(event.type));
    await locks.using('a', () => locks.using('a', () => 1));
    expect(seen).toEqual(['acquired', 'released']);
  });

  it('shares the locks of the scope between the branches that it starts', async () => {
    await locks.using('a', () =>
      Promise.all([
        locks.using('a', { waitTime: 0 }, () => pass(5)),
        locks.using('a', { waitTime: 0 }, () => pass(5)),
      ]),
    );
  });

  it('does not share a lock that one branch takes with the others', async () => {
    await locks.using('a', async () => {
      let inside = 0;
      const branch = () =>
        locks.using('b', async () => {
          expect(++inside).toBe(1);
          await pass(5);
          inside--;
        });
      await Promise.all([branch(), branch()]);
    });
  });

  it('keeps the lock as long as a nested call has to, also when the outer one ends before', async () => {
    await locks.using('a', () => locks.using('a', { minHoldTime: 5_000 }, () => undefined));
    expect(await locks.getLock('a').isLocked()).toBe(true);
    expect(await locks.getLock('a').remainingTime()).toBeGreaterThan(3_000);
    await locks.using('b', { minHoldTime: 5_000 }, () => locks.using('b', () => undefined));
    expect(await locks.getLock('b').isLocked()).toBe(true);
    await locks.using('c', () => locks.using('c', () => undefined));
    expect(await locks.getLock('c').isLocked()).toBe(false);
  });

  it('throws at a nested acquisition when the outer lease is lost', async () => {
    await locks.using('a', async (outer) => {
      await locks.forceRelease('a');
      await expect(locks.acquire('a')).rejects.toBe(outer.signal.reason);
      await expect(locks.tryAcquire('a')).rejects.toMatchObject({ code: 'LOCK_LOST' });
      expect(locks.getLock('a').isHeld()).toBe(false);
      expect(locks.getLock('a').holdCount()).toBe(0);
    });
    expect(await locks.tryAcquire('a')).not.toBeNull();
  });
});

describe('what is acquired by hand inside of a lock', () => {
  const kinds: [string, (name: string) => Lock][] = [
    ['a plain lock', (name) => locks.getLock(name)],
    ['a fair lock', (name) => locks.getFairLock(name)],
    ['a write lock', (name) => locks.getReadWriteLock(name).write],
    ['a semaphore of one', (name) => locks.getSemaphore(name, 1)],
    ['a multi-lock', (name) => locks.getMultiLock([locks.getLock(name), locks.getFairLock(`${name} fair`)])],
  ];

  it.each(kinds)('is an owner of its own: %s', async (_, lockOf) => {
    const lock = lockOf('a');
    await locks.using('leader', async () => {
      const lease = await lock.acquire();
      expect(await lock.tryAcquire()).toBeNull();
      await expect(lock.using({ waitTime: 0 }, () => 1)).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
      expect(lock.isHeld()).toBe(false);
      expect(lock.holdCount()).toBe(0);
      expect(() => {
        assertLocked('a');
      }).toThrow();
      await lease.release();
      expect(await lock.isLocked()).toBe(false);
    });
  });

  it('re-enters that lock, and those further out', async () => {
    const { write } = locks.getReadWriteLock('rw');
    await locks.using('a', (outer) =>
      write.using(() =>
        locks.using(['b', 'c'], async () => {
          const inner = await locks.acquire(['a', 'c'], { waitTime: 0 });
          expect(inner.fencingTokens.get('a')).toBe(outer.fencingToken);
          expect(locks.getLock('a').holdCount()).toBe(2);
          await inner.release();
          const again = await write.tryAcquire();
          expect(write.holdCount()).toBe(2);
          await again?.release();
        }),
      ),
    );
  });

  it('of several locks shares among its members, and with no other acquisition', async () => {
    const { read, write } = locks.getReadWriteLock('rw');
    const both = locks.getMultiLock([read, write]);
    await locks.using('leader', async () => {
      const lease = await both.acquire();
      expect(await both.tryAcquire()).toBeNull();
      expect(await read.tryAcquire()).toBeNull();
      await lease.release();
    });
  });
});

describe('runInScope', () => {
  it('separates the callback from the locks of its caller', async () => {
    await locks.using('a', async () => {
      await locks.runInScope(async () => {
        expect(locks.getLock('a').isHeld()).toBe(false);
        await expect(locks.acquire('a', { waitTime: 10 })).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
      });
      expect(locks.getLock('a').isHeld()).toBe(true);
    });
  });

  it('has what is acquired by hand in it, as a thread has', async () => {
    const { write } = locks.getReadWriteLock('rw');
    for (const lock of [locks.getLock('a'), write, locks.getMultiLock([locks.getLock('b'), write])]) {
      await locks.runInScope(async () => {
        const lease = await lock.acquire();
        const again = await lock.tryAcquire();
        expect(again?.fencingToken).toBe(lease.fencingToken);
        expect(lock.holdCount()).toBe(2);
        expect(() => {
          assertLocked(lock.name.split(',')[0]);
        }).not.toThrow();
        await lease.release();
        expect(lock.holdCount()).toBe(1);
        await lock.using({ waitTime: 0 }, () => 1);
        await again?.release();
        expect(lock.isHeld()).toBe(false);
        const later = await lock.acquire();
        await lock.using({ waitTime: 0 }, () => 1);
        await later.release();
      });
      expect(await lock.isLocked()).toBe(false);
    }
  });

  it('has two owners in branches that ask before it holds the lock, and one in those that ask after that', async () => {
    await locks.runInScope(async () => {
      const ask = () => locks.acquire('a', { waitTime: 50 });
      const [first, second] = await Promise.allSettled([ask(), ask()]);
      expect(first.status).toBe('fulfilled');
      expect(second).toMatchObject({ status: 'rejected', reason: { code: 'LOCK_TIMEOUT' } });
      await Promise.all([ask(), ask()]);
      expect(locks.getLock('a').holdCount()).toBe(3);
    });
  });

  it('counts the permits of a semaphore', async () => {
    const semaphore = locks.getSemaphore('a', 3);
    await locks.runInScope(async () => {
      await semaphore.acquire();
      await semaphore.using(async () => {
        await semaphore.acquire();
        expect(semaphore.holdCount()).toBe(2);
      });
      expect(semaphore.holdCount()).toBe(1);
    });
  });
});

describe('work that outlives its scope', () => {
  it('cannot use the hold that is over', async () => {
    let orphan: Promise<unknown> = Promise.resolve();
    await locks.using('a', () => {
      orphan = pass(20).then(async () => {
        expect(locks.getLock('a').isHeld()).toBe(false);
        return locks.tryAcquire('a');
      });
    });
    const taken = await locks.acquire('a');
    expect(await orphan).toBeNull();
    await taken.release();
  });

  it('goes on with what it has entered again, until it gives that up', async () => {
    const { read, write } = locks.getReadWriteLock('rw');
    for (const lock of [locks.getLock('a'), locks.getFairLock('b'), write]) {
      let orphan: Promise<void> = Promise.resolve();
      await lock.using((outer) => {
        orphan = lock.using(async () => {
          await pass(10);
          expect(outer.held).toBe(false);
          expect(lock.holdCount()).toBe(1);
          const inner = await lock.acquire({ waitTime: 0 });
          expect(inner.fencingToken).toBe(outer.fencingToken);
          if (lock === write) await (await read.acquire({ waitTime: 0 })).release();
          await inner.release();
          expect(lock.holdCount()).toBe(1);
        });
      });
      await orphan;
      expect(await locks.inspect(lock.name)).toBeNull();
    }
  });
});

it('a second service never re-enters the locks of the first', async () => {
  const store = new MemoryLockStore();
  const one = new LockService({ store });
  const two = new LockService({ store });
  await one.using('a', async () => {
    expect(two.getLock('a').isHeld()).toBe(false);
    expect(await two.tryAcquire('a')).toBeNull();
  });
  await one.onApplicationShutdown();
  await two.onApplicationShutdown();
});
