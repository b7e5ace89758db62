import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type Lease, LockService, LockUnavailableError, MemoryLockStore } from '../../lib/index.js';
import { worthAnotherTry } from '../../lib/store/another-try.js';
import { deferred } from '../doubles/deferred.js';
import { ScriptedStore } from '../doubles/scripted-store.js';
import { Attempt } from '../../lib/locks/attempt.js';
import { callOf } from '../../lib/locks/call.js';
import type { PlainLock } from '../../lib/locks/plain-lock.js';
import { pass, useVirtualTime } from '../support/virtual-time.js';

useVirtualTime();

let locks: LockService;
let others: LockService;
let group: PlainLock[];

beforeEach(() => {
  const store = new MemoryLockStore();
  [locks, others] = [new LockService({ store }), new LockService({ store })];
  group = ['a', 'b', 'c', 'd'].map((name) => locks.getLock(name) as unknown as PlainLock);
});

afterEach(async () => {
  await locks.onApplicationShutdown();
  await others.onApplicationShutdown();
});

/** @param hold ms */
const enter = async (hold: number) => {
  const steps = hold > 0 ? group.map((lock) => [lock]) : [group];
  const attempt = new Attempt({ steps, hold }, callOf(group[0]!.client, { waitTime: 5_000 }));
  const refusal = await attempt.run();
  await attempt.giveBack();
  if (refusal?.answer instanceof Error) throw refusal.answer;
  return refusal?.answer ?? attempt.leases;
};
const held = () => locks.leases().map(({ name }: Lease) => name);
const owned = async () => {
  const states = await Promise.all(['a', 'b', 'c', 'd'].map((name) => others.inspect(name)));
  const mine = new Set(states.map((state) => state?.holders[0]?.owner).filter(Boolean));
  return { names: states.map((state) => state !== null), owners: mine.size };
};

describe('a group of plain locks that may hold some while it waits', () => {
  it('holds those before the one that is busy, and none behind it', async () => {
    const [b, d] = [await others.acquire('b'), await others.acquire('d')];
    const entering = enter(5_000);
    await pass(50);
    expect((await owned()).names).toEqual([true, true, false, true]);
    expect(await others.tryAcquire('a')).toBeNull();
    await (await others.acquire('c', { waitTime: 0 })).release();
    await b.release();
    await pass(50);
    expect(await others.tryAcquire('c')).toBeNull();
    expect((await locks.inspect('d'))?.waiters.local).toBe(1);
    await d.release();
    const leases = await entering;
    if ('busy' in leases) throw new Error('busy');
    expect(leases.map(({ name }) => name)).toEqual(['a', 'b', 'c', 'd']);
    await Promise.all(leases.map((lease) => lease.release()));
    expect((await owned()).owners).toBe(0);
  });

  it('tells of no loss of what no caller has yet', async () => {
    const d = await others.acquire('d');
    const told: string[] = [];
    locks.events$.subscribe(({ type }) => told.push(type));
    const entering = enter(5_000);
    await pass(50);
    await others.forceRelease('a');
    await locks.forceRelease('b');
    await d.release();
    await expect(entering).rejects.toMatchObject({
      cause: { message: expect.stringMatching('a lease ended') },
    });
    expect(told).toEqual(['force-released']);
    expect((await owned()).owners).toBe(0);
  });

  it.each<[string, () => Promise<unknown>]>([
    ['when it is given back', () => others.forceRelease('a')],
    ['at a shutdown', () => locks.onApplicationShutdown()],
  ])('tells of no loss of it %s', async (_, end) => {
    const d = await others.acquire('d');
    const told: string[] = [];
    locks.events$.subscribe(({ type }) => told.push(type));
    const entering = enter(200).catch((error: unknown) => error);
    await pass(50);
    await end();
    await entering;
    await d.release();
    expect(told).toEqual([]);
    expect((await owned()).owners).toBe(0);
  });

  it('gives everything back when it has held some for too long', async () => {
    const d = await others.acquire('d');
    const began = performance.now();
    const answer = await enter(200);
    expect(answer).toMatchObject({ busy: true, name: 'd', holder: d.owner });
    expect(performance.now() - began).toBeGreaterThan(150);
    expect(performance.now() - began).toBeLessThan(4_000);
    expect((await owned()).names).toEqual([false, false, false, true]);
    expect(held()).toEqual([]);
  });

  it('answers when they are given back', async () => {
    const { store } = (locks.getLock('a') as unknown as PlainLock).client;
    const release = store.release.bind(store);
    const gate = deferred();
    store.release = async (request) => {
      await gate.promise;
      return await release(request);
    };
    const d = await others.acquire('d');
    let isAnswered = false;
    const entering = enter(20).finally(() => (isAnswered = true));
    await pass(80);
    expect(isAnswered).toBe(false);
    gate.resolve();
    expect(await entering).toMatchObject({ busy: true, name: 'd' });
    expect((await owned()).names).toEqual([false, false, false, true]);
    await d.release();
  });
});

it('a group that may hold none waits for one at a time', async () => {
  const [b, d] = [await others.acquire('b'), await others.acquire('d')];
  const entering = enter(0);
  await pass(50);
  expect((await owned()).names).toEqual([false, true, false, true]);
  await b.release();
  expect(await entering).toMatchObject({ busy: true, name: 'd' });
  expect((await owned()).names).toEqual([false, false, false, true]);
  await d.release();
});

it('a group that does not wait asks the store, also about a lock that callers of this process wait for', async () => {
  const a = await others.acquire('a');
  const waiting = locks.acquire('a', { waitTime: 5_000 });
  const refused = locks.acquire(['a', 'b'], { waitTime: 0 });
  const refusal = await refused.catch((error: unknown) => error);
  await a.release();
  await (await waiting).release();
  expect(refusal).toMatchObject({ name: 'LockTimeoutError', holder: a.owner });
});

/** Its answers take a while, and it does nothing after it has closed. */
class SlowStore extends MemoryLockStore {
  readonly told: string[] = [];

  override async acquireAll(...given: Parameters<MemoryLockStore['acquireAll']>) {
    const reply = await super.acquireAll(...given);
    await pass(100);
    return reply;
  }

  override async release(...given: Parameters<MemoryLockStore['release']>) {
    await pass(20);
    this.told.push(`release ${given[0].name}`);
    return await super.release(...given);
  }

  override async close() {
    this.told.push('close');
    await super.close();
  }
}

describe('a request for several locks under way', () => {
  it('is given back before the store of a service closes', async () => {
    const store = new SlowStore();
    const service = new LockService({ store });
    const refused = expect(service.acquire(['a', 'b'])).rejects.toMatchObject({ code: 'LOCK_CLOSED' });
    await pass(10);
    await service.close();
    await refused;
    expect(store.told).toEqual(['release a', 'release b', 'close']);
  });

  it('has one wait time for both tries', async () => {
    const store = new ScriptedStore();
    const service = new LockService({ store });
    const dropped = worthAnotherTry(new LockUnavailableError('a', { effect: 'refused' }));
    store.acquireAll = () => {
      store.acquireAll = () => new Promise(() => undefined);
      return pass(1_800).then(() => Promise.reject(dropped));
    };
    const begun = performance.now();
    await expect(service.acquire(['a', 'b'], { waitTime: 2_000 })).rejects.toBeDefined();
    expect(performance.now() - begun).toBeLessThan(2_500);
    await service.close();
  });
});
