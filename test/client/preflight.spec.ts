import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Preflight } from '../../lib/client/preflight.js';
import { LockService, MemoryLockStore, type StoreWarning } from '../../lib/index.js';
import type { StoreHealth } from '../../lib/store/index.js';

const warning = (code: string, node = 'a'): StoreWarning => ({ code, node, message: `${code} of ${node}` });
const health = (...warnings: StoreWarning[]): StoreHealth => ({ status: 'up', nodes: [], warnings });

class ReportedStore extends MemoryLockStore {
  asked = 0;
  answer: () => Promise<StoreHealth> = () => Promise.resolve(health());

  override health(): Promise<StoreHealth> {
    this.asked++;
    return this.answer();
  }
}

describe('Preflight', () => {
  let store: ReportedStore;
  let told: string[];
  let preflight: Preflight;

  beforeEach(() => {
    jest.useFakeTimers();
    store = new ReportedStore();
    told = [];
    preflight = new Preflight(store, ({ message }) => told.push(message));
  });

  afterEach(() => {
    jest.useRealTimers();
  });

  it('leaves out the warnings that are silenced, also in what it returns', async () => {
    store.answer = () => Promise.resolve(health(warning('x'), warning('y')));
    preflight = new Preflight(store, ({ message }) => told.push(message), ['x']);
    expect((await preflight.report()).warnings.map(({ code }) => code)).toEqual(['y']);
    expect(told).toEqual(['y of a']);
  });

  it('tells each warning once, however many ask', async () => {
    store.answer = () => Promise.resolve(health(warning('x'), warning('x', 'b'), warning('y')));
    preflight.look();
    await jest.advanceTimersByTimeAsync(0);
    expect(told).toEqual(['x of a', 'x of b', 'y of a']);
    store.answer = () => Promise.resolve(health(warning('x'), warning('z')));
    expect((await preflight.report()).warnings).toHaveLength(2);
    expect(told.slice(3)).toEqual(['z of a']);
  });

  it.each<[string, () => Promise<unknown>]>([
    ['never answers', () => new Promise(() => undefined)],
    ['rejects', () => Promise.reject(new Error('out of order'))],
    ['throws', undefined as never],
    ['answers with nothing', () => Promise.resolve(undefined)],
    ['answers without its nodes', () => Promise.resolve({ status: 'up', warnings: [] })],
    ['answers without warnings', () => Promise.resolve({ status: 'up', nodes: [] })],
  ])('takes a store that %s for down, within 5 s', async (_, answer) => {
    store.answer = answer as () => Promise<StoreHealth>;
    const locks = new LockService({ store });
    const asked = locks.health();
    await jest.advanceTimersByTimeAsync(5_000);
    expect(await Promise.race([asked, Promise.resolve('nothing')])).toMatchObject({
      status: 'down',
      nodes: [
        {
          node: 'store',
          status: 'down',
          error: expect.stringMatching(/^out of order$|^this.answer is not|5000 ms|is no health/),
        },
      ],
      warnings: [],
    });
    await locks.onApplicationShutdown();
  });
});
