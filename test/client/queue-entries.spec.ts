import { expect, it } from '@jest/globals';
import { LockService, LockUnavailableError } from '../../lib/index.js';
import type { ConnectionChange } from '../../lib/store/index.js';
import { CLAIM, type QueueMessage } from '../../lib/store/queue-messages.js';
import { deferred } from '../doubles/deferred.js';
import { ScriptedStore } from '../doubles/scripted-store.js';
import { pass, until, useVirtualTime } from '../support/virtual-time.js';

useVirtualTime();

it('a wait that is shorter than what has to be opened for it ends with the answer of the store', async () => {
  const store = new ScriptedStore();
  const [holder, waiter] = [new LockService({ store }), new LockService({ store })];
  const listen = store.subscribeToQueue.bind(store);
  store.subscribeToQueue = async (client, onMessage) => {
    await pass(50);
    return await listen(client, onMessage);
  };
  const lease = await waiter.getFairLock('a').acquire({ waitTime: 1 });
  expect(lease.held).toBe(true);
  await expect(holder.getFairLock('a').acquire({ waitTime: 1 })).rejects.toMatchObject({
    code: 'LOCK_TIMEOUT',
    holder: lease.owner,
  });
  await lease.release();
  expect(await store.inspect('a')).toBeNull();
  for (const service of [waiter, holder]) await service.onApplicationShutdown();
});

it('a subscription that comes when the service has closed is given up', async () => {
  const store = new ScriptedStore();
  const open = new Set<object>();
  const listen = store.subscribeToQueue.bind(store);
  store.subscribeToQueue = async (client, onMessage) => {
    await pass(20);
    const subscription = await listen(client, onMessage);
    open.add(subscription);
    const close = subscription.close.bind(subscription);
    subscription.close = () => {
      open.delete(subscription);
      close();
    };
    return subscription;
  };
  const service = new LockService({ store });
  const acquired = service.getFairLock('a').acquire();
  acquired.catch(() => undefined);
  await service.onApplicationShutdown();
  await expect(acquired).rejects.toMatchObject({ code: 'LOCK_CLOSED' });
  await pass(50);
  expect([...open]).toEqual([]);
});

it('a waiter that has left while the store was out of reach says so as soon as the store answers', async () => {
  const store = new ScriptedStore();
  let connect: (() => void) | undefined;
  store.onConnectionChange = (listener?: (change: ConnectionChange) => void) => {
    connect = () => listener?.({ node: 'a', connected: true });
  };
  const service = new LockService({ store });
  const lease = await service.getFairLock('a').acquire();
  store.onRelease = () => {
    throw new LockUnavailableError('a', { effect: 'refused' });
  };
  await expect(service.getFairLock('a').acquire({ waitTime: 20 })).rejects.toThrow();
  expect((await store.inspect('a'))?.queue).toHaveLength(1);
  // Repeated by itself it would come after 250 ms.
  store.onRelease = () => undefined;
  connect?.();
  await pass(50);
  expect((await store.inspect('a'))?.queue).toHaveLength(0);
  await lease.release();
  await service.onApplicationShutdown();
});

it('a look whose answer comes when only claims are granted counts as sent before: the next one finds a lost grant', async () => {
  const store = new ScriptedStore();
  const service = new LockService({ store });
  const listen = store.subscribeToQueue.bind(store);
  let hear: (message: QueueMessage) => void = () => undefined;
  store.subscribeToQueue = (client, onMessage) => {
    hear = onMessage;
    return listen(client, (message) => {
      if (message.type !== 'granted') onMessage(message);
    });
  };
  const holder = await service.getFairLock('a').acquire();
  const waiting = service.getFairLock('a').acquire({ waitTime: Infinity });
  await until(async () => (await store.inspect('a'))?.queue.length === 1);
  // Its look reaches the store while it is busy, and is answered much later.
  const answered = deferred();
  store.afterAcquire = () => answered.promise;
  const asked = store.calls.acquire;
  hear({ type: 'missed' });
  await until(() => store.calls.acquire > asked);
  store.afterAcquire = () => undefined;
  await holder.release();
  await pass(CLAIM + 100);
  answered.resolve();
  const found = await Promise.race([waiting, pass(10_000, undefined)]);
  expect(found?.held).toBe(true);
  await found?.release();
  await service.onApplicationShutdown();
});

it('a grant that is told after a later one is none', async () => {
  const store = new ScriptedStore();
  const locks = new LockService({ store });
  const reply = deferred();
  store.afterAcquire = () => reply.promise;
  const first = locks.getFairLock('a').acquire();
  await until(async () => (await store.inspect('a')) !== null);
  store.afterAcquire = () => undefined;
  await store.forceRelease('a', undefined);
  const second = await locks.getFairLock('a').acquire();
  reply.resolve();
  expect(await Promise.race([first, pass(200, 'waits')])).toBe('waits');
  expect(second.held).toBe(true);
  await second.release();
  const lease = await first;
  expect(lease.fencingToken).toBeGreaterThan(second.fencingToken);
  await lease.release();
  expect(await store.inspect('a')).toBeNull();
  await locks.onApplicationShutdown();
});

it('a release that the store carries out after its own repetition is no loss', async () => {
  const store = new ScriptedStore();
  const service = new LockService({ store });
  const events: string[] = [];
  service.events$.subscribe(({ type }) => events.push(type));
  const lock = service.getFairLock('a');
  const lease = await lock.acquire();
  const late = deferred();
  // As on a cluster whose slot is being moved: the node refuses the command until all keys have gone.
  store.onRelease = () => (store.calls.release > 1 ? undefined : late.promise);
  const released = lease.release();
  await pass(5);
  // The answer names an owner that has left. So it is released once more, and that comes first.
  const next = await lock.acquire();
  late.resolve();
  await released;
  expect(store.calls.release).toBe(2);
  expect(events).not.toContain('lost');
  expect(events).toContain('released');
  await next.release();
  await service.onApplicationShutdown();
});
