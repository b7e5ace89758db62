import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { LockService } from '../../lib/index.js';
import { ScriptedStore } from '../doubles/scripted-store.js';
import { pass, until, useVirtualTime } from '../support/virtual-time.js';

/** A store of the application may call code, such as its metrics, while it takes a request. That code may use the locks. */

useVirtualTime();

let store: ScriptedStore;
let services: LockService[];

const open = (): LockService => {
  const service = new LockService({ store });
  services.push(service);
  return service;
};

/** The code runs once, as the next request is taken. */
const once = (code: () => void) => {
  let isDone = false;
  return () => {
    if (isDone) return;
    isDone = true;
    code();
  };
};

beforeEach(() => {
  store = new ScriptedStore();
  services = [];
});

afterEach(async () => {
  await Promise.all(services.map((service) => service.onApplicationShutdown()));
});

it.each([true, false])(
  'code that asks for the lock that is asked for waits its turn (queues: %p)',
  async (has) => {
    store.hasQueues = has;
    const locks = open();
    let inner: Promise<string> | undefined;
    store.beforeAcquire = once(() => {
      inner = locks.using('a', { waitTime: 1_000 }, () => 'inner');
    });
    expect(await locks.using('a', { waitTime: 1_000 }, () => 'outer')).toBe('outer');
    expect(await inner).toBe('inner');
    expect(await store.inspect('a')).toBeNull();
  },
);

it.each([true, false])('a caller that it makes leave leaves nothing behind (queues: %p)', async (has) => {
  store.hasQueues = has;
  const [locks, other] = [open(), open()];
  const held = await other.acquire('a');
  const leaver = new AbortController();
  const waiting = locks.acquire('a', { signal: leaver.signal, waitTime: 60_000 });
  await until(() => store.calls.acquire === 2);
  const asked = store.calls.acquire;
  store.beforeAcquire = once(() => {
    leaver.abort();
  });
  if (!has) await held.release();
  await expect(waiting).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
  expect(store.calls.acquire).toBeGreaterThan(asked);
  await pass(10);
  expect((await store.inspect('a'))?.queue ?? []).toEqual([]);
  await held.release();
  await pass(10);
  expect(await store.inspect('a')).toBeNull();
});

it('a caller of several locks that it makes leave leaves nothing behind', async () => {
  const locks = open();
  const leaver = new AbortController();
  const ask = store.acquireAll.bind(store);
  store.acquireAll = (request) => {
    leaver.abort();
    return ask(request);
  };
  const waiting = locks.acquire(['a', 'b'], { signal: leaver.signal });
  await expect(waiting).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
  await pass(10);
  expect([await store.inspect('a'), await store.inspect('b')]).toEqual([null, null]);
});

it('a caller that it makes leave as the lock is handed over leaves nothing behind', async () => {
  const locks = open();
  const held = await locks.acquire('a', { leaseTime: 5_000 });
  const leaver = new AbortController();
  const waiting = locks.acquire('a', { signal: leaver.signal });
  const refused = expect(waiting).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
  // Only a process that receives messages hands over.
  await pass(10);
  store.onRelease = once(() => {
    leaver.abort();
  });
  await held.release();
  await refused;
  expect(store.calls.handOver).toBe(1);
  await pass(10);
  expect(await store.inspect('a')).toBeNull();
});

it('a caller that it makes leave keeps no timer', async () => {
  const locks = open();
  const leaver = new AbortController();
  store.beforeAcquire = once(() => {
    leaver.abort();
  });
  const timers = jest.getTimerCount();
  const waiting = locks.acquire('a', { signal: leaver.signal, waitTime: 60_000 });
  const refused = expect(waiting).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
  // The timer of a wait would keep the process alive.
  expect(jest.getTimerCount()).toBe(timers);
  await refused;
});
