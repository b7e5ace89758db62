import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { type LockLostError, LockService, LockUnavailableError } from '../../lib/index.js';
import { deferred } from '../doubles/deferred.js';
import { ScriptedStore } from '../doubles/scripted-store.js';

let store: ScriptedStore;
let locks: LockService;
let administrator: LockService;
/** How often messages have been asked for. */
let listened: number;

beforeEach(() => {
  jest.useFakeTimers();
  store = new ScriptedStore();
  [locks, administrator] = [new LockService({ store }), new LockService({ store })];
  listened = 0;
  const listen = store.subscribeToQueue.bind(store);
  store.subscribeToQueue = (client, onMessage) => {
    listened++;
    return listen(client, onMessage);
  };
});

afterEach(async () => {
  for (const service of [locks, administrator]) await service.onApplicationShutdown();
  jest.useRealTimers();
});

const pass = (time: number) => jest.advanceTimersByTimeAsync(time);

describe('a hold that has lasted for a second', () => {
  it.each([
    ['renewed', {}],
    ['fixed', { leaseTime: 600_000 }],
  ])('is told at once when it is taken away by force: a %s lease (pitfall 49)', async (_, options) => {
    const { signal } = await locks.acquire('a', options);
    await pass(1_001);
    store.calls.renew = 0;
    await administrator.forceRelease('a');
    await pass(0);
    expect((signal.reason as LockLostError).reason).toBe('deleted');
    // The administrator holds nothing, and the holder has asked once.
    expect(store.calls.renew).toBe(1);
  });

  it('is asked about once, because the subscription began after the grant', async () => {
    const { signal } = await locks.acquire('a');
    await pass(500);
    await administrator.forceRelease('a');
    await pass(501);
    expect((signal.reason as LockLostError).reason).toBe('deleted');
    expect(store.calls.renew).toBe(1);
    // From now on messages are heard: nobody has to be asked about the next one.
    await locks.acquire('a');
    await pass(9_000);
    expect(store.calls.renew).toBe(1);
  });

  it('is asked about again when messages have not come through for a while', async () => {
    let hear: (message: { type: 'missed' }) => void = () => undefined;
    const { subscribeToQueue: listen } = store;
    store.subscribeToQueue = (client, onMessage) => {
      hear = onMessage;
      return listen(client, () => undefined);
    };
    const { signal } = await locks.acquire('a');
    await pass(2_000);
    await administrator.forceRelease('a');
    await pass(0);
    expect(signal.aborted).toBe(false);
    hear({ type: 'missed' });
    await pass(0);
    expect(signal.aborted).toBe(true);
  });

  it.each([
    ['told when the message overtakes the reply that grants it', 1_001, 0],
    ['asked about where it was granted before the subscription, and the reply came after that', 900, 500],
  ])('is %s', async (_, before, after) => {
    await locks.acquire('b');
    await pass(before);
    const reply = deferred();
    store.afterAcquire = () => reply.promise;
    const acquiring = locks.acquire('a');
    await pass(0);
    await administrator.forceRelease('a');
    await pass(after);
    reply.resolve();
    const { signal } = await acquiring;
    await pass(0);
    expect((signal.reason as LockLostError).reason).toBe('deleted');
  });

  it('shares one subscription, and one question, with all others', async () => {
    const names = Array.from({ length: 100 }, (_, n) => `a${String(n)}`);
    const leases = await Promise.all(names.map((name) => locks.acquire(name)));
    await locks.getFairLock('fair').acquire();
    await pass(30_000);
    expect(listened).toBe(1);
    store.calls.renew = 0;
    await Promise.all(names.slice(0, 50).map((name) => store.forceRelease(name)));
    await pass(0);
    expect(leases.map(({ held }) => held)).toEqual(names.map((_, n) => n >= 50));
    expect(store.calls.renew).toBe(1);
  });

  it('is what the client subscribes to messages for, and not a shorter one', async () => {
    for (let n = 0; n < 20; n++) {
      const lease = await locks.acquire('a');
      await pass(900);
      await lease.release();
      await pass(50);
    }
    expect(listened).toBe(0);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('subscribes again now and then where the subscription was refused', async () => {
    const { subscribeToQueue: listen } = store;
    let refused = 0;
    store.subscribeToQueue = () => {
      refused++;
      return Promise.reject(new LockUnavailableError(undefined, {}));
    };
    const { signal } = await locks.acquire('a');
    await pass(15_000);
    expect(refused).toBe(2);
    store.subscribeToQueue = listen;
    await pass(10_000);
    expect(listened).toBe(1);
    await administrator.forceRelease('a');
    await pass(0);
    expect(signal.aborted).toBe(true);
  });

  it('subscribes again when the subscription has ended', async () => {
    let end: () => void = () => undefined;
    const { subscribeToQueue: listen } = store;
    store.subscribeToQueue = async (client, onMessage) => {
      const { close } = await listen(client, onMessage);
      let active = true;
      end = () => {
        active = false;
        onMessage({ type: 'missed' });
      };
      return {
        get active() {
          return active;
        },
        close,
      };
    };
    await locks.acquire('a');
    await pass(2_000);
    expect(listened).toBe(1);
    end();
    await pass(2_000);
    expect(listened).toBe(2);
    await pass(60_000);
    expect(listened).toBe(2);
  });
});
