import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { currentLease, type Lease, LockService, MemoryLockStore } from '../../lib/index.js';
import { pass, standStill, useVirtualTime } from '../support/virtual-time.js';

useVirtualTime();

let store: MemoryLockStore;
let locks: LockService;
let other: LockService;
/** What was heard, and the lock in whose scope the listener ran. */
let heard: [string, string | undefined][];

beforeEach(() => {
  store = new MemoryLockStore();
  locks = new LockService({ store });
  other = new LockService({ store });
  heard = [];
});

afterEach(async () => {
  await locks.onApplicationShutdown();
  await other.onApplicationShutdown();
});

const hear = (what: string) => heard.push([what, currentLease()?.name]);
const hearAbort = (lease: Lease) => {
  lease.signal.addEventListener('abort', () => hear('abort'));
};
/** In none. */
const nowhere = (...what: string[]) => what.map((one) => [one, undefined]);

describe('the listeners of events$ run in no scope', () => {
  beforeEach(() => {
    locks.events$.subscribe({ next: ({ type }) => hear(type), complete: () => hear('complete') });
  });

  it('when a lock is taken and released', async () => {
    await locks.using('outer', async () => {
      await locks.using('inner', () => 1);
      await (await locks.acquire('by hand')).release();
    });
    expect(heard).toEqual(nowhere('acquired', 'acquired', 'released', 'acquired', 'released', 'released'));
  });

  it('when a loss is found by force, by a look at the clock, and by a timer', async () => {
    await locks.using('outer', async () => {
      await locks.acquire('forced');
      await locks.forceRelease('forced');
      const seen = await locks.acquire('seen', { leaseTime: 30 });
      standStill(30);
      expect(seen.held).toBe(false);
      await locks.acquire('timed', { leaseTime: 30 });
      await pass(60);
    });
    const losses = heard.filter(([type]) => type === 'lost');
    expect(losses).toEqual(nowhere('lost', 'lost', 'lost'));
  });

  it('when the service closes', async () => {
    await locks.using('outer', () => locks.onApplicationShutdown());
    await locks.close();
    expect(heard).toEqual(nowhere('acquired', 'released', 'complete'));
  });
});

describe('the abort listeners of a lease run in no scope', () => {
  it('when its loss is found by force, by a look at the clock, and by a timer', async () => {
    await locks.using('outer', async () => {
      hearAbort(await locks.acquire('forced'));
      await locks.forceRelease('forced');
      const seen = await locks.acquire('seen', { leaseTime: 30 });
      hearAbort(seen);
      standStill(30);
      expect(seen.held).toBe(false);
      hearAbort(await locks.acquire('timed', { leaseTime: 30 }));
      await pass(60);
    });
    expect(heard).toEqual(nowhere('abort', 'abort', 'abort'));
  });

  it('when the service closes', async () => {
    await locks.using('outer', async () => {
      hearAbort(await locks.acquire('inner'));
      await locks.onApplicationShutdown();
    });
    expect(heard).toEqual(nowhere('abort'));
  });
});

it.each(['close', 'onApplicationShutdown'] as const)(
  'a listener may call close() during %s()',
  async (way) => {
    let delay = 0;
    class Late extends MemoryLockStore {
      override async release(request: Parameters<MemoryLockStore['release']>[0]) {
        await pass((delay += 5));
        return await super.release(request);
      }
    }
    const service = new LockService({ store: new Late() });
    const closes: Promise<void>[] = [];
    for (const name of ['a', 'b', 'c']) {
      const lease = await service.acquire(name);
      lease.signal.addEventListener('abort', () => closes.push(service.close()));
    }
    const ended = service[way]().then(() => Promise.all(closes));
    expect(await Promise.race([ended.then(() => 'closed'), pass(60_000, 'open')])).toBe('closed');
    expect(closes).toHaveLength(3);
  },
);
