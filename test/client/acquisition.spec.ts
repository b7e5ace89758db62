import { beforeEach, describe, expect, it } from '@jest/globals';
import { LockUnavailableError } from '../../lib/index.js';
import { deferred } from '../doubles/deferred.js';
import { ScriptedStore } from '../doubles/scripted-store.js';
import { pass, until, useVirtualTime } from '../support/virtual-time.js';
import { servicesOfEach } from '../support/services.js';

useVirtualTime();

let store: ScriptedStore;
const { open } = servicesOfEach(() => ({ store }));

const queueLength = async () => (await store.inspect('a'))?.queue.length ?? 0;

beforeEach(() => {
  store = new ScriptedStore();
});

const isFree = async () => (await store.inspect('a')) === null;

it('takes back a request that arrives after the release of its caller, and whose answer is lost', async () => {
  const arrives = deferred();
  store.beforeAcquire = () => arrives.promise;
  store.afterAcquire = () => Promise.reject(new LockUnavailableError('a'));
  const controller = new AbortController();
  const waiting = open().acquire('a', { signal: controller.signal });
  await until(() => store.calls.acquire === 1);
  controller.abort();
  await expect(waiting).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
  await until(() => store.calls.release === 1);
  arrives.resolve();
  await until(() => store.calls.release > 1);
  await until(isFree);
});

it('takes back an entry that went with a release, and arrives after the release of its caller', async () => {
  const locks = open();
  const lease = await locks.acquire('a');
  const controller = new AbortController();
  const waiting = locks.acquire('a', { leaseTime: 29_000, signal: controller.signal });
  const arrives = deferred();
  store.onRelease = () => arrives.promise;
  // Only a process that receives messages sends an entry along.
  await pass(10);
  const released = lease.release();
  await until(() => store.calls.handOver === 1);
  store.onRelease = () => undefined;
  controller.abort();
  await expect(waiting).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
  await until(() => store.calls.release === 1);
  arrives.resolve();
  await released;
  await until(isFree);
});

it('is the only one of its process, also where the lock came by another way', async () => {
  const [locks, other] = [open(), open()];
  const [first, second] = [deferred(), deferred()];
  store.beforeAcquire = () => first.promise;
  const waiting = locks.acquire('a', { leaseTime: 5_000 });
  await until(() => store.calls.acquire === 1);
  store.beforeAcquire = () => undefined;
  const both = await locks.acquire(['a', 'b'], { waitTime: 0 });
  store.beforeAcquire = () => second.promise;
  first.resolve();
  await until(() => store.calls.acquire === 2);
  await both.release();
  // Asking for ever, it would let no timer of this process fire.
  store.beforeAcquire = () => (store.calls.acquire > 20 ? new Promise(() => undefined) : undefined);
  second.resolve();
  const lease = await waiting;
  await pass(20);
  expect(await queueLength()).toBe(0);
  store.calls.acquire = 0;
  await lease.release();
  await pass(50);
  // A second one would be granted what nobody wants, and ask for ever.
  expect(store.calls.acquire).toBe(0);
  expect(await other.tryAcquire('a')).toMatchObject({ held: true });
});

describe('a store of the application that throws in place of rejecting, or gives no answer of a store', () => {
  const broken = () => {
    throw new TypeError('broken');
  };

  it('fails the caller', async () => {
    store.acquire = broken;
    await expect(open().acquire('a', { waitTime: 1_000 })).rejects.toThrow('broken');
  });

  it.each([undefined, null, {}, true])('fails the caller that it answers with %p', async (answer) => {
    store.acquire = () => Promise.resolve(answer as never);
    const locks = open();
    await expect(locks.acquire('a', { waitTime: 1_000 })).rejects.toThrow('the store answers');
    await expect(locks.tryAcquire('b')).rejects.toThrow('the store answers');
  });

  it.each([
    ['throws', broken, 'broken'],
    ['answers with nothing', () => Promise.resolve(undefined as never), 'the store answers'],
    ['leaves a half out', () => Promise.resolve({ released: 'released' } as never), 'the store answers'],
  ])('fails the callers that wait as it hands the lock over, and %s', async (_, handOver, message) => {
    const locks = open();
    const lease = await locks.acquire('a', { leaseTime: 5_000 });
    const waiting = locks.acquire('a', { waitTime: Infinity });
    // Only a process that receives messages sends an entry along.
    await pass(10);
    store.handOver = handOver;
    await lease.release();
    await expect(waiting).rejects.toThrow(message);
  });
});

it.each([true, false])(
  'pauses for longer each time after grants that come too late (queues: %p)',
  async (has) => {
    store.hasQueues = has;
    // Each answer comes after the end of its lease.
    store.afterAcquire = () => pass(200);
    const waiting = open().acquire('a', { leaseTime: 100, waitTime: 10_000 });
    await expect(waiting).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    // 50 without pauses.
    expect(store.calls.acquire).toBeLessThan(30);
  },
);

it('keeps the lease of a request without an answer, which may arrive after the release', async () => {
  const locks = open();
  const arrives = deferred();
  const acquire = store.acquire.bind(store);
  let stray: Promise<unknown> | undefined;
  store.acquire = (request) => {
    if (stray !== undefined) return acquire(request);
    stray = arrives.promise.then(() => acquire(request));
    return Promise.reject(new LockUnavailableError('a'));
  };
  const leaver = new AbortController();
  const first = locks.acquire('a', { leaseTime: 30_000, signal: leaver.signal });
  const second = locks.acquire('a', { leaseTime: 1_000 });
  await until(() => stray !== undefined);
  await pass(1);
  leaver.abort();
  await expect(first).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
  await (await second).release();
  await pass(5_000);
  arrives.resolve();
  await stray;
  await until(isFree, 20_000);
});

describe('a store of the application that calls code, such as its metrics, as it takes a request', () => {
  it.each([true, false])('keeps nothing of a caller that it makes leave (queues: %p)', async (has) => {
    store.hasQueues = has;
    const [locks, other] = [open(), open()];
    const held = await other.acquire('a');
    const leaver = new AbortController();
    const waiting = locks.acquire('a', { signal: leaver.signal, waitTime: 60_000 });
    await until(() => store.calls.acquire === 2);
    store.beforeAcquire = () => {
      leaver.abort();
    };
    if (!has) await held.release();
    await expect(waiting).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
    await pass(10);
    expect((await store.inspect('a'))?.queue ?? []).toEqual([]);
    await held.release();
    await pass(10);
    expect(await store.inspect('a')).toBeNull();
  });

  it('keeps nothing of a caller that it makes leave as the lock is handed over', async () => {
    const locks = open();
    const held = await locks.acquire('a', { leaseTime: 5_000 });
    const leaver = new AbortController();
    const refused = expect(locks.acquire('a', { signal: leaver.signal })).rejects.toMatchObject({
      code: 'LOCK_ABORTED',
    });
    // Only a process that receives messages hands over.
    await pass(10);
    store.onRelease = () => {
      leaver.abort();
    };
    await held.release();
    await refused;
    expect(store.calls.handOver).toBe(1);
    await pass(10);
    expect(await store.inspect('a')).toBeNull();
  });
});
