import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { LockService, LockUnavailableError, MemoryLockStore } from '../../lib/index.js';
import { worthAnotherTry } from '../../lib/store/another-try.js';
import { ScriptedStore } from '../doubles/scripted-store.js';
import { pass, useVirtualTime } from '../support/virtual-time.js';

useVirtualTime();

let locks: LockService;
let others: LockService;

beforeEach(() => {
  const store = new MemoryLockStore();
  [locks, others] = [new LockService({ store }), new LockService({ store })];
});

afterEach(async () => {
  await locks.onApplicationShutdown();
  await others.onApplicationShutdown();
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
  it('is given back before the store of a service closes, unless it is of a holder', async () => {
    const store = new SlowStore();
    const service = new LockService({ store });
    void service.using('c', () => service.using(['d', 'e'], () => undefined));
    const refused = expect(service.acquire(['a', 'b'])).rejects.toMatchObject({ code: 'LOCK_CLOSED' });
    await pass(10);
    await service.close();
    await refused;
    expect(store.told).toEqual([...['a', 'b', 'd', 'e', 'c'].map((name) => `release ${name}`), 'close']);
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
