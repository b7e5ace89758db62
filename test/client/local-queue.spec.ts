import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import { type LockEvent, LockUnavailableError, MemoryLockStore } from '../../lib/index.js';
import { deferred } from '../doubles/deferred.js';
import { ScriptedStore } from '../doubles/scripted-store.js';
import { pass, until, useVirtualTime } from '../support/virtual-time.js';
import { servicesOfEach } from '../support/services.js';

useVirtualTime();

let store: ScriptedStore;
const { open } = servicesOfEach(() => ({ store }));

beforeEach(() => {
  store = new ScriptedStore();
});

describe('the callers of one process', () => {
  it('are served in the order of arrival', async () => {
    const locks = open();
    const order: number[] = [];
    await Promise.all(Array.from({ length: 30 }, (_, n) => locks.using('a', () => void order.push(n))));
    expect(order).toEqual(Array.from({ length: 30 }, (_, n) => n));
  });

  it('leave no queue and no subscription behind', async () => {
    const locks = open();
    await Promise.all(Array.from({ length: 10 }, () => locks.using('a', () => pass(1))));
    await locks.using('b', () => pass(1));
    const { client } = locks as unknown as {
      client: { callers: { queues: Map<string, unknown> }; tenures: { all: unknown[] } };
    };
    await pass(5);
    expect(client.callers.queues.size).toBe(0);
    expect(client.tenures.all).toEqual([]);
    expect((store as unknown as { listeners: Map<string, unknown> }).listeners.size).toBe(0);
  });
});

describe('hand-off', () => {
  const handOffs = (events: LockEvent[]) =>
    events.filter((event) => event.type === 'acquired' && event.handedOff).length;

  const run = async (times: number, options: object, acquire: object = {}) => {
    const locks = open(options);
    const events: LockEvent[] = [];
    locks.events$.subscribe((event) => events.push(event));
    await Promise.all(Array.from({ length: times }, () => locks.using('a', acquire, () => pass(0))));
    return events;
  };

  it('passes the lock on without a command, with a greater token each time', async () => {
    const events = await run(10, {});
    expect(store.calls).toMatchObject({ acquire: 1, release: 1, handOver: 0 });
    // The one look at what is held when messages begin to be heard.
    expect(store.calls.renew).toBeLessThanOrEqual(1);
    const tokens = events.flatMap((event) => (event.type === 'acquired' ? [event.fencingToken] : []));
    expect(tokens).toEqual(tokens.map((_, n) => tokens[0]! + n));
    // The store learns the last one with the release.
    expect(store.released[0]?.fencingToken).toBe(tokens.at(-1));
  });

  it('asks the store again after as many hand-offs as localHandoff allows', async () => {
    expect(handOffs(await run(12, { localHandoff: 3 }))).toBe(9);
    expect(store.calls.acquire + store.calls.handOver).toBeGreaterThanOrEqual(3);
  });

  it('is off with 0', async () => {
    expect(handOffs(await run(5, { localHandoff: 0 }))).toBe(0);
  });

  it('is for leases that the watchdog renews, not for fixed ones', async () => {
    expect(handOffs(await run(5, {}, { leaseTime: 10_000 }))).toBe(0);
  });

  it('is for a successor that wants the same lease', async () => {
    const locks = open();
    const lease = await locks.acquire('a');
    const waiting = locks.acquire('a', { leaseTime: 5_000, renew: true });
    await pass(5);
    await lease.release();
    expect((await waiting).owner).not.toBe(lease.owner);
  });

  it('needs half of the lease, for its successor to stand on', async () => {
    const locks = open({ leaseTime: 400 });
    store.onRenew = () => Promise.reject(new LockUnavailableError('a', { cause: new Error('away') }));
    const lease = await locks.acquire('a');
    const waiting = locks.acquire('a');
    await pass(250);
    expect(lease.held).toBe(true);
    await lease.release();
    const next = await waiting;
    expect(next.owner).not.toBe(lease.owner);
    expect(next.remainingTime()).toBeGreaterThan(300);
  });
});

describe('a waiter that leaves', () => {
  it.each(['abort', 'timeout'])('while its request is in flight (%s) takes the lock back', async (way) => {
    const locks = open();
    const reply = deferred();
    store.afterAcquire = () => reply.promise;
    const controller = new AbortController();
    const options = way === 'abort' ? { signal: controller.signal } : { waitTime: 30 };
    const waiting = locks.acquire('a', options);
    await pass(10);
    if (way === 'abort') controller.abort();
    await expect(waiting).rejects.toMatchObject({
      code: way === 'abort' ? 'LOCK_ABORTED' : 'LOCK_UNAVAILABLE',
    });
    // The release is on its way before anybody hears of the failure.
    expect(store.calls.release).toBe(1);
    reply.resolve();
    store.afterAcquire = () => undefined;
    await pass(5);
    expect(await locks.inspect('a')).toBeNull();
  });

  it('leaves its request to the waiters behind it', async () => {
    const locks = open();
    const reply = deferred();
    store.beforeAcquire = () => reply.promise;
    const controller = new AbortController();
    const leaver = locks.acquire('a', { signal: controller.signal });
    const stayer = locks.acquire('a');
    await pass(5);
    controller.abort();
    await expect(leaver).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
    reply.resolve();
    expect((await stayer).held).toBe(true);
    expect(store.calls.acquire).toBe(1);
  });
});

describe('a caller that has just been granted the lock', () => {
  it('does not wait again after the abort of its signal where that hold was taken away', async () => {
    const locks = open();
    const lease = await locks.acquire('a');
    const controller = new AbortController();
    const waiting = locks.acquire('a', { waitTime: Infinity, signal: controller.signal });
    await pass(5);
    const answered = deferred();
    store.forceRelease = () => answered.promise.then(() => true);
    const forcing = locks.forceRelease('a');
    const refused = expect(waiting).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
    await MemoryLockStore.prototype.forceRelease.call(store, 'a');
    answered.resolve();
    await Promise.resolve();
    void lease.release();
    controller.abort();
    await refused;
    await forcing;
    await pass(20);
    // Else a hold without a caller would be renewed for ever.
    expect(await store.inspect('a')).toBeNull();
  });

  it('is refused where the service closes at that moment, and its callback does not run', async () => {
    const locks = open();
    const lease = await locks.acquire('a');
    const callback = jest.fn();
    const waiting = locks.using('a', callback);
    await pass(5);
    const refused = expect(waiting).rejects.toMatchObject({ code: 'LOCK_CLOSED' });
    void lease.release();
    void locks.close();
    await refused;
    expect(callback).not.toHaveBeenCalled();
  });
});

describe('tryAcquire', () => {
  it('behind waiters gets an answer that was given after it asked, and does not overtake them', async () => {
    const [holder, locks] = [open(), open()];
    const lease = await holder.acquire('a');
    const waiting = locks.acquire('a');
    await pass(10);
    store.calls.acquire = 0;
    expect(await locks.tryAcquire('a')).toBeNull();
    expect(store.calls.acquire).toBe(1);
    await lease.release();
    expect((await waiting).held).toBe(true);
  });

  it('where this process holds the lock itself asks once for all callers whether it still does', async () => {
    const locks = open();
    await locks.acquire('a');
    store.calls.acquire = 0;
    expect(await Promise.all(Array.from({ length: 100 }, () => locks.tryAcquire('a')))).toEqual(
      Array.from({ length: 100 }, () => null),
    );
    expect(store.calls).toMatchObject({ acquire: 0, renew: 1, subscribe: 0 });
  });

  it('is answered by what the store said after it asked, not by a question from before', async () => {
    const locks = open();
    await locks.acquire('a');
    const [first, second] = [deferred(), deferred()];
    store.onRenew = () => first.promise;
    const early = locks.tryAcquire('a');
    await pass(5);
    store.onRenew = () => second.promise;
    const late = locks.tryAcquire('a');
    await pass(5);
    first.resolve();
    expect(await early).toBeNull();
    await open().forceRelease('a');
    second.resolve();
    expect(await late).toMatchObject({ held: true });
  });

  it('waits for no subscription of the waiter before it', async () => {
    const [holder, locks] = [open(), open()];
    await holder.acquire('a');
    store.subscribeToQueue = () => new Promise(() => undefined);
    locks.acquire('a').catch(() => undefined);
    await until(() => store.calls.acquire === 2);
    await pass(10);
    expect(await Promise.race([locks.tryAcquire('a'), pass(400, 'no answer')])).toBeNull();
  });
});

describe('a hold that only this process believes in', () => {
  const KINDS: [string, object][] = [
    ['renewed', {}],
    ['fixed', { leaseTime: 30_000 }],
  ];

  it.each(KINDS)('keeps no other caller out: one that does not wait (%s)', async (_, options) => {
    const locks = open();
    const believed = await locks.acquire('a', options);
    await open().forceRelease('a');
    expect(await locks.tryAcquire('a')).toMatchObject({ held: true });
    expect(believed.signal.reason).toMatchObject({ reason: 'deleted' });
  });

  it('is not ended by a message: the store decides', async () => {
    store.hasQueues = false;
    const locks = open();
    let say: () => void = () => undefined;
    const subscribe = store.subscribeToReleases.bind(store);
    store.subscribeToReleases = (name, onWake) => {
      say = onWake;
      return subscribe(name, onWake);
    };
    const lease = await locks.acquire('a');
    const waiting = locks.acquire('a');
    await pass(150);
    store.calls.renew = 0;
    for (let n = 0; n < 10; n++) say();
    await pass(10);
    expect(store.calls.renew).toBe(1);
    expect(lease.held).toBe(true);
    await lease.release();
    expect((await waiting).held).toBe(true);
  });

  it('is said to be taken, and callers are refused, where another has it by now', async () => {
    const [locks, other] = [open(), open()];
    const believed = await locks.acquire('a');
    await other.forceRelease('a');
    const { owner } = await other.acquire('a');
    await expect(locks.acquire('a', { waitTime: 0 })).rejects.toMatchObject({
      code: 'LOCK_TIMEOUT',
      holder: owner,
    });
    expect(believed.signal.reason).toMatchObject({ reason: 'taken' });
  });

  it('names no holder where the store does not answer', async () => {
    const locks = open();
    const lease = await locks.acquire('a');
    store.onRenew = () => new Promise(() => undefined);
    await expect(locks.acquire('a', { waitTime: 20 })).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    await lease.release();
    const second = await locks.acquire('b');
    store.onRenew = () => Promise.reject(new LockUnavailableError('b', { cause: new Error('away') }));
    await expect(locks.tryAcquire('b')).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    expect(second.held).toBe(true);
  });

  it('of an exclusive kind with a queue ends when the store grants another', async () => {
    const locks = open();
    store.subscribeToQueue = () => Promise.reject(new LockUnavailableError(undefined, {}));
    const believed = await locks.getFairLock('a').acquire();
    await store.forceRelease('a');
    const present = await locks.getFairLock('a').acquire();
    expect(present.held).toBe(true);
    expect(believed.signal.reason).toMatchObject({ reason: 'taken' });
    await present.release();
    const { read, write } = locks.getReadWriteLock('b');
    const writer = await write.acquire();
    await store.forceRelease('b');
    expect((await read.acquire()).held).toBe(true);
    expect(writer.signal.reason).toMatchObject({ reason: 'taken' });
  });
});

it('refuses the waiters and new callers at shutdown', async () => {
  const locks = open();
  const lease = await locks.acquire('a');
  const waiting = locks.acquire('a');
  const losses: LockEvent[] = [];
  locks.events$.subscribe((event) => event.type === 'lost' && losses.push(event));
  const closed = locks.onApplicationShutdown();
  await expect(waiting).rejects.toMatchObject({ code: 'LOCK_CLOSED', status: 503 });
  await expect(locks.acquire('b')).rejects.toMatchObject({ code: 'LOCK_CLOSED' });
  await closed;
  expect(lease.held).toBe(false);
  expect(losses).toMatchObject([{ name: 'a', owner: lease.owner, reason: 'released' }]);
  // Whoever still works must not believe that it holds the lock.
  expect(lease.signal.reason).toMatchObject({
    code: 'LOCK_LOST',
    reason: 'released',
    cause: { code: 'LOCK_CLOSED' },
  });
  expect(await open().inspect('a')).toBeNull();
});
