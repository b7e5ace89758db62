import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { type LockLostError, LockService, type LockStore, MemoryLockStore } from '../../lib/index.js';
import { describeLockStore } from '../../lib/testing/describe-lock-store.js';
import { servicesOfEach } from '../support/services.js';

/** A memory store without the parts of the port that a store may leave out, or with others in their place. */
function storeWith(parts: object, store = new MemoryLockStore()): LockStore {
  const own: object = { queues: undefined, handOver: undefined, ...parts };
  return new Proxy<LockStore>(store, {
    get: (target, member) => {
      const value: unknown = member in own ? Reflect.get(own, member) : Reflect.get(target, member);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

describeLockStore(
  'without the parts that it may leave out',
  () => {
    const store = storeWith({ nodeOf: undefined, outageOf: undefined });
    return Promise.resolve({ open: () => store, close: () => Promise.resolve() });
  },
  { queues: false, losses: false },
);

describe('A store without queues and without messages', () => {
  const { open } = servicesOfEach(() => ({}));
  const serviceOn = (store: LockStore) => open({ store });

  afterEach(() => {
    jest.useRealTimers();
  });

  it('gives a plain lock to one after the other', async () => {
    const memory = new MemoryLockStore();
    const [a, b] = [serviceOn(storeWith({}, memory)), serviceOn(storeWith({}, memory))];
    const lease = await a.acquire('plain');
    const next = b.acquire('plain', { waitTime: 5_000 });
    await lease.release();
    expect((await next).fencingToken).toBeGreaterThan(lease.fencingToken);
  });

  it('tells of a lock that was taken away with the next renewal', async () => {
    jest.useFakeTimers();
    const store = storeWith({});
    const { signal } = await serviceOn(store).acquire('taken');
    await jest.advanceTimersByTimeAsync(2_000);
    await store.forceRelease('taken');
    await jest.advanceTimersByTimeAsync(10_000);
    expect((signal.reason as LockLostError).reason).toBe('deleted');
  });

  it.each(['its own reason', undefined])('refuses the other kinds, for %s', (noQueues) => {
    const locks = serviceOn(storeWith({ noQueues }));
    const reason = noQueues ?? 'has no fair lock, read-write lock or semaphore: its store has no queues';
    for (const make of [
      () => locks.getFairLock('fair'),
      () => locks.getReadWriteLock('shared').read,
      () => locks.getSemaphore('several', 2),
    ]) {
      expect(make).toThrow(`store: ${reason}`);
    }
  });
});

it.each([{}, { subscribe: 'text' }, 'text', null])('Queues of the form %j are refused at boot', (queues) => {
  expect(() => new LockService({ store: storeWith({ queues }) })).toThrow("must be 'memory' or a LockStore");
});
