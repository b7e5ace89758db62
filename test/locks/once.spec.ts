import { beforeEach, describe, expect, it } from '@jest/globals';
import { of } from 'rxjs';
import {
  isLockAbortedError,
  isLockClosedError,
  isLockConfigError,
  isLockLostError,
  isLockTimeoutError,
  isLockUnavailableError,
  type LockLostError,
  LockService,
  type LockStore,
  LockUnavailableError,
  MemoryLockStore,
} from '../../lib/index.js';
import type { StorePeriods } from '../../lib/store/index.js';
import { deferred } from '../doubles/deferred.js';
import { abortAfter, pass, until, useVirtualTime } from '../support/virtual-time.js';
import { servicesOfEach } from '../support/services.js';

useVirtualTime();

let store: MemoryLockStore;
let a: LockService;
let b: LockService;
const { open, services } = servicesOfEach(() => ({ store, leaseTime: 3_000 }));
const service = (given: LockStore = store) => open({ store: given });

const failure = async (promise: Promise<unknown>): Promise<unknown> =>
  await promise.then(
    () => undefined,
    (error: unknown) => error,
  );

beforeEach(() => {
  store = new MemoryLockStore();
  [a, b] = [service(), service()];
});

/** A store whose notes do something else. */
const storeWith = (change: (periods: StorePeriods) => Partial<StorePeriods> | undefined): LockStore =>
  new Proxy(store, {
    get: (target, member) => {
      const value: unknown = Reflect.get(target, member);
      if (member === 'periods') {
        const changed = change(target.periods);
        return changed && { ...target.periods, ...changed };
      }
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });

describe('once', () => {
  it('runs in one of all calls that come in a period, and tells the others how long ago', async () => {
    let runs = 0;
    const call = (locks: LockService) =>
      locks.once('report', { period: '1h' }, async (lease) => {
        await pass(30);
        expect(locks.getLock('report').isHeld()).toBe(true);
        lease.assertHeld();
        return ++runs;
      });
    const answers = await Promise.all([a, b, a, b].map(call));
    expect(answers.filter(({ ran }) => ran)).toEqual([{ ran: true, value: 1 }]);
    for (const answer of answers) if (!answer.ran) expect(answer.since).toBeLessThan(1_000);
    await pass(30);
    const later = await call(b);
    expect(later).toEqual({ ran: false, since: expect.any(Number) });
    expect((later as { since: number }).since).toBeGreaterThanOrEqual(29);
    expect(runs).toBe(1);
    expect(await a.inspect('report')).toBeNull();
  });

  it('runs again when the period is over, which each call may measure by its own', async () => {
    const runs: string[] = [];
    const call = (period: number, name: string) => a.once('report', { period }, () => runs.push(name));
    await call(100, 'first');
    await call(100, 'too soon');
    await pass(40);
    await call(30, 'shorter');
    await pass(40);
    await call(30, 'last');
    expect(runs).toEqual(['first', 'shorter', 'last']);
  });

  it('lets none try before retryAfterFailure is over', async () => {
    const options = { period: '1h', retryAfterFailure: 200 } as const;
    let failed = 0;
    await failure(
      a.once('report', options, async () => {
        await pass(20);
        failed = performance.now();
        throw new Error('no paper');
      }),
    );
    expect(isLockTimeoutError(await failure(b.once('report', { ...options, waitTime: 0 }, () => 0)))).toBe(
      true,
    );
    const answer = await b.once('report', options, () => performance.now());
    expect(answer.ran && answer.value - failed).toBeGreaterThanOrEqual(195);
    expect((await a.once('report', options, () => 0)).ran).toBe(false);
  });

  it('notes no success of a lease that is lost, and gives the result with the loss', async () => {
    const begun = deferred();
    const lost = a.once('report', { period: '1h' }, async (lease) => {
      begun.resolve();
      await until(() => !lease.held);
      return 'late';
    });
    await begun.promise;
    await b.forceRelease('report');
    const error = await failure(lost);
    expect(isLockLostError(error)).toBe(true);
    expect((error as LockLostError).result).toBe('late');
    expect((await b.once('report', { period: '1h' }, () => 'again')).ran).toBe(true);
  });

  it('does not run under a lease that is lost while it asks for the note', async () => {
    let [asked, runs] = [0, 0];
    const locks: LockService = service(
      storeWith((periods) => ({
        recall: async (name) => {
          if (++asked === 2) await locks.forceRelease(name);
          return await periods.recall(name);
        },
      })),
    );
    const refused = locks.once('report', { period: '1h' }, () => runs++);
    await expect(refused).rejects.toMatchObject({ code: 'LOCK_LOST' });
    expect(runs).toBe(0);
  });

  it('says which service has taken the lease away', async () => {
    const lost = a.once('report', { period: '1h' }, () => a.forceRelease('report', { reason: 'stuck' }));
    expect(await failure(lost)).toMatchObject({ result: true, forced: { reason: 'stuck' } });
  });

  it('notes no success of a lease that the store has given to another, before the holder knows of it', async () => {
    let other: string | undefined;
    const lost = a.once('report', { period: '1h' }, async (lease) => {
      await store.release({ name: 'report', owner: lease.owner });
      other = (await b.acquire('report')).owner;
      expect(lease.held).toBe(true);
    });
    expect((await failure(lost)) as LockLostError).toMatchObject({ code: 'LOCK_LOST', reason: 'taken' });
    expect((await b.inspect('report'))?.holders[0]?.owner).toBe(other);
    await b.leases()[0]!.release();
    expect((await b.once('report', { period: '1h' }, () => 'again')).ran).toBe(true);
  });

  it('leaves no gap between the note and the release', async () => {
    let runs = 0;
    const call = (locks: LockService) => locks.once('report', { period: '1h' }, () => runs++);
    for (let turn = 0; turn < 20; turn++) {
      await Promise.all(Array.from({ length: 10 }, (_, n) => call(n % 2 === 0 ? a : b)));
    }
    expect(runs).toBe(1);
  });

  it('sends the note again while the lease lasts', async () => {
    let tries = 0;
    const locks = service(
      storeWith((periods) => ({
        remember: async (request) => {
          if (++tries < 3) throw new LockUnavailableError('report');
          return await periods.remember(request);
        },
      })),
    );
    expect((await locks.once('report', { period: '1h' }, () => 0)).ran).toBe(true);
    expect(tries).toBe(3);
    expect((await b.once('report', { period: '1h' }, () => 0)).ran).toBe(false);
  });

  it('asks again for a note where an answer is lost, before and under the lock', async () => {
    let asked = 0;
    const locks = service(
      storeWith((periods) => ({
        recall: async (name) => {
          if (++asked % 2 === 1) throw new LockUnavailableError('report');
          return await periods.recall(name);
        },
      })),
    );
    expect(await locks.once('report', { period: '1h' }, () => 7)).toEqual({ ran: true, value: 7 });
    expect(asked).toBe(4);
  });

  it('fails where the note is refused, and where the store does not answer', async () => {
    const permanent = true;
    const refusing = service(
      storeWith(() => ({
        remember: () => Promise.reject(new LockUnavailableError('report', { permanent })),
      })),
    );
    expect(isLockUnavailableError(await failure(refusing.once('report', { period: 1_000 }, () => 0)))).toBe(
      true,
    );
    const silent = service(
      storeWith(() => ({ recall: () => Promise.reject(new LockUnavailableError('report')) })),
    );
    let runs = 0;
    const asked = silent.once('report', { period: 1_000, waitTime: 100 }, () => runs++);
    expect(isLockUnavailableError(await failure(asked))).toBe(true);
    expect(runs).toBe(0);
  });

  it('ends its wait with the signal, the wait time, and the service', async () => {
    const held = await b.acquire('report');
    const wait = (options: object) => failure(a.once('report', { period: 1_000, ...options }, () => 0));
    expect(isLockAbortedError(await wait({ signal: abortAfter(20) }))).toBe(true);
    expect(isLockTimeoutError(await wait({ waitTime: 20 }))).toBe(true);
    const closed = wait({});
    await pass(10);
    await a.close();
    expect(isLockClosedError(await closed)).toBe(true);
    await held.release();
  });

  describe('on a store that is closed with its service', () => {
    let locks: LockService;
    let questions: number;
    const call = () => failure(locks.once('report', { period: '1h', waitTime: 1_000 }, () => 0));

    beforeEach(() => {
      questions = 0;
      locks = service(
        storeWith(() => ({
          recall: () => {
            questions++;
            return Promise.reject(new LockUnavailableError('report', { effect: 'refused' }));
          },
        })),
      );
    });

    it('asks no more when the service closes between two questions', async () => {
      const asked = call();
      await until(() => questions > 1);
      await locks.onApplicationShutdown();
      const before = questions;
      expect(isLockClosedError(await asked)).toBe(true);
      expect(questions).toBe(before);
    });
  });

  it('ends its wait for a store that does not answer after the wait time of the module, where it has none of its own', async () => {
    const impatient = new LockService({
      store: storeWith(() => ({ recall: () => new Promise(() => undefined) })),
      waitTime: 50,
    });
    services.push(impatient);
    const waits = failure(impatient.once('report', { period: 1_000 }, () => 0));
    expect(isLockUnavailableError(await Promise.race([waits, pass(5_000)]))).toBe(true);
  });

  it('spends one wait time on the lock and the questions together', async () => {
    let questions = 0;
    const silence = deferred();
    const locks = service(
      storeWith((periods) => ({
        recall: async (name) => {
          if (++questions > 1) await silence.promise;
          return await periods.recall(name);
        },
      })),
    );
    const held = await b.acquire('report');
    const began = performance.now();
    const refused = failure(locks.once('report', { period: '1h', waitTime: 1_000 }, () => 0));
    await pass(700);
    await held.release();
    expect(isLockUnavailableError(await refused)).toBe(true);
    expect(questions).toBe(2);
    expect(performance.now() - began).toBeLessThan(1_500);
    silence.resolve();
  });

  it.each([
    [{}, 'period: must be a whole number of milliseconds from 1 to'],
    [{ period: 0 }, 'period: must be'],
    [{ period: '1 day' }, 'period: must be'],
    [{ period: 1, retryAfterFailure: -1 }, 'retryAfterFailure: must be'],
    [{ period: 1, waitTime: 'x' }, 'waitTime: must be'],
    [{ period: 1, signal: {} }, 'signal: must be'],
    [{ period: 1, every: 1 }, 'every: is not an option of once'],
    [null, 'options: must be an object'],
  ])('refuses %j', async (options, message) => {
    const error = await failure(a.once('report', options as never, () => 0));
    expect(isLockConfigError(error)).toBe(true);
    expect((error as Error).message).toContain(message);
  });

  it.each([
    ['a running call', 1, (run: () => Promise<unknown>) => a.once('report', { period: '1h' }, run)],
    ['a lock of that name', 1, (run: () => Promise<unknown>) => a.using('report', run)],
    [
      'a lock of that name with the label of once',
      1,
      (run: () => Promise<unknown>) => a.using('report', { label: 'once' }, run),
    ],
    [
      'a running call in a lock of that name',
      1,
      (run: () => Promise<unknown>) => a.using('report', () => a.once('report', { period: '1h' }, run)),
    ],
  ])('started in the async context of %s, runs %i in all', async (place, expected, around) => {
    let runs = 0;
    const call = () =>
      a.once('report', { period: '1h' }, () =>
        a.using('report', async () => {
          await pass(30);
          runs++;
        }),
      );
    let started: Promise<unknown[]> | undefined;
    await around(async () => {
      // A shared queue starts the work of other requests here, which the holder does not wait for.
      started = Promise.all([call(), call()]);
      await pass(20);
      if (place.startsWith('a running call')) runs++;
    });
    await started;
    expect(runs).toBe(expected);
    expect(await a.inspect('report')).toBeNull();
  });

  it.each([
    ['a running call', (run: () => Promise<void>) => a.once('report', { period: '1h' }, run)],
    [
      'a running call in a lock of that name',
      (run: () => Promise<void>) => a.using('report', () => a.once('report', { period: '1h' }, run)),
    ],
  ])('waits for itself in %s: tells of it, and ends with the service', async (_, around) => {
    const told: unknown[] = [];
    a.events$.subscribe((event) => event.type === 'warning' && told.push(event.code));
    const call = failure(
      around(async () => {
        await a.once('report', { period: '1h' }, () => 0);
      }),
    );
    await pass(11_000);
    expect(told).toEqual(['self-wait']);
    await a.close();
    expect(isLockClosedError(await call)).toBe(true);
  });

  it('side by side with another in a lock of that name, ends with its wait, its signal, or the note', async () => {
    const cause = new AbortController();
    const call = (options?: object) => a.once('report', { period: '1h', ...options }, () => pass(1_000));
    const calls = await a.using('report', async () => {
      const all = [call(), call({ waitTime: 50 }), call({ signal: cause.signal }), call()];
      await pass(100);
      cause.abort();
      return await Promise.allSettled(all);
    });
    expect(calls).toMatchObject([
      { value: { ran: true } },
      { reason: { code: 'LOCK_TIMEOUT', message: expect.stringContaining(' 50 ms') } },
      { reason: { code: 'LOCK_ABORTED' } },
      { value: { ran: false } },
    ]);
  });

  it('refuses a missing callback, a wrong name, a result that is read later, and a store without notes', async () => {
    const period = 1_000;
    expect(isLockConfigError(await failure(a.once('report', { period }, undefined as never)))).toBe(true);
    expect((await failure(a.once('', { period }, () => 0))) as Error).toMatchObject({ code: 'LOCK_KEY' });
    expect(isLockConfigError(await failure(a.once('report', { period }, () => of(1).pipe)))).toBe(false);
    expect(isLockConfigError(await failure(a.once('other', { period }, () => [1].values())))).toBe(true);
    expect((await a.once('other', { period }, () => 0)).ran).toBe(true);
    const error = await failure(service(storeWith(() => undefined)).once('report', { period }, () => 0));
    expect((error as Error).message).toContain('store: runs nothing once per period');
  });
});
