import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { LockService, MemoryLockStore } from '../../lib/index.js';

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
      await sleep(1);
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

  it('keeps the lock until the last hold, in whatever order they end', async () => {
    const lock = locks.getLock('a');
    let inner: Awaited<ReturnType<typeof lock.acquire>> | undefined;
    await locks.using('a', async () => {
      inner = await lock.acquire();
    });
    expect(await lock.isLocked()).toBe(true);
    expect(inner?.held).toBe(true);
    await inner?.release();
    expect(await lock.isLocked()).toBe(false);
  });

  it('re-enters what was acquired in the scope without a callback', async () => {
    await locks.using('outer', async () => {
      const lease = await locks.acquire('a');
      const again = await locks.tryAcquire('a');
      expect(again?.fencingToken).toBe(lease.fencingToken);
      await again?.release();
      await lease.release();
      expect(locks.getLock('a').isHeld()).toBe(false);
    });
  });

  it('is one acquisition and one release to those who watch', async () => {
    const seen: string[] = [];
    locks.events$.subscribe((event) => seen.push(event.type));
    await locks.using('a', () => locks.using('a', () => 1));
    expect(seen).toEqual(['acquired', 'released']);
  });

  it('recurses', async () => {
    const depth = async (n: number): Promise<number> =>
      n === 0 ? locks.getLock('a').holdCount() : locks.using('a', () => depth(n - 1));
    expect(await depth(10)).toBe(10);
    expect(await locks.inspect('a')).toBeNull();
  });

  it('shares the locks of the scope between the branches that it starts', async () => {
    await locks.using('a', () =>
      Promise.all([
        locks.using('a', { waitTime: 0 }, () => sleep(5)),
        locks.using('a', { waitTime: 0 }, () => sleep(5)),
      ]),
    );
  });

  it('does not share a lock that one branch takes with the others', async () => {
    await locks.using('a', async () => {
      let inside = 0;
      const branch = () =>
        locks.using('b', async () => {
          expect(++inside).toBe(1);
          await sleep(5);
          inside--;
        });
      await Promise.all([branch(), branch()]);
    });
  });

  it('extends the outer lease for a nested fixed lease that is longer, and never cuts it', async () => {
    await locks.using('a', { leaseTime: 1_000 }, async (outer) => {
      const longer = await locks.acquire('a', { leaseTime: 20_000 });
      expect(outer.remainingTime()).toBeGreaterThan(15_000);
      const shorter = await locks.acquire('a', { leaseTime: 500 });
      expect(outer.remainingTime()).toBeGreaterThan(15_000);
      await shorter.release();
      await longer.release();
      expect(outer.held).toBe(true);
    });
  });

  it('is none of those who hear of the loss of another lease, wherever that comes to light', async () => {
    const heard: boolean[] = [];
    const hear = () => heard.push(locks.getLock('a').isHeld());
    const one = await locks.acquire('b', { leaseTime: 100 });
    one.signal.addEventListener('abort', hear);
    locks.events$.subscribe(({ type }) => type === 'lost' && hear());
    await locks.using('a', async () => {
      // By a look at the clock, and by a timer that was set in this scope.
      while (one.held);
      const another = await locks.acquire('b', { leaseTime: 100 });
      const lost = new Promise((resolve) => {
        another.signal.addEventListener('abort', resolve);
      });
      another.signal.addEventListener('abort', hear);
      await lost;
      expect(locks.getLock('a').isHeld()).toBe(true);
    });
    expect(heard).toEqual([false, false, false, false]);
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

describe('outside a scope', () => {
  it('every acquisition is its own owner', async () => {
    const lease = await locks.acquire('a');
    expect(await locks.tryAcquire('a')).toBeNull();
    expect(locks.getLock('a').isHeld()).toBe(false);
    await lease.release();
  });

  it('two requests that share one lock object exclude each other', async () => {
    const lock = locks.getLock('a');
    let inside = 0;
    const request = () =>
      lock.using(async () => {
        expect(++inside).toBe(1);
        await sleep(2);
        inside--;
      });
    await Promise.all([request(), request(), request()]);
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

  it('is a scope itself', async () => {
    await locks.runInScope(async () => {
      const lease = await locks.acquire('a');
      const again = await locks.tryAcquire('a');
      expect(again?.fencingToken).toBe(lease.fencingToken);
      await lease.release();
      await again?.release();
    });
    expect(await locks.inspect('a')).toBeNull();
  });
});

describe('work that outlives its scope', () => {
  it('cannot use the hold that is over', async () => {
    let orphan: Promise<unknown> = Promise.resolve();
    await locks.using('a', () => {
      orphan = sleep(20).then(async () => {
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
          await sleep(10);
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

  it('has nothing more of what it has given up, even while other work that was left behind holds it', async () => {
    const lock = locks.getLock('a');
    let longer: Promise<void> = Promise.resolve();
    let shorter: Promise<void> = Promise.resolve();
    await lock.using(async () => {
      await new Promise<void>((entered) => {
        shorter = locks.using('b', async () => {
          const lease = await lock.acquire();
          entered();
          await sleep(10);
          expect(lock.isHeld()).toBe(true);
          await lease.release();
          expect(lock.isHeld()).toBe(false);
          expect(await lock.tryAcquire()).toBeNull();
        });
      });
      longer = lock.using(() => shorter);
    });
    await Promise.all([shorter, longer]);
    expect(await lock.isLocked()).toBe(false);
  });

  it('does not share what it acquires later', async () => {
    let orphan: Promise<void> = Promise.resolve();
    await locks.using('a', () => {
      orphan = sleep(10).then(async () => {
        const lease = await locks.acquire('b');
        expect(await locks.tryAcquire('b')).toBeNull();
        await lease.release();
      });
    });
    await orphan;
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
