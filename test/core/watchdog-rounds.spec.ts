import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { now, timerAt } from '../../lib/core/deadline.js';
import { LeaseBounds } from '../../lib/core/lease-bounds.js';
import { Tenure } from '../../lib/core/tenure.js';
import { Watchdog } from '../../lib/core/watchdog.js';
import { LockKindMismatchError, LockUnavailableError, MemoryLockStore } from '../../lib/index.js';
import type { HoldState, RenewRequest } from '../../lib/store/index.js';

let asked: { at: number; requests: readonly RenewRequest[] }[];
/** What the store answers about a name. */
let answer: (name: string) => Promise<HoldState>;
let failures: { names: string[]; error: unknown }[];
let store: MemoryLockStore;
let watchdog: Watchdog;
let tenures: Tenure[];
let begun: number;

beforeEach(() => {
  jest.useFakeTimers();
  begun = now();
  [asked, failures, tenures] = [[], [], []];
  answer = () => Promise.resolve('held');
  store = new MemoryLockStore();
  store.renew = (requests) => {
    asked.push({ at: Math.round(now() - begun), requests });
    return requests.map(({ name }) => answer(name));
  };
  watchdog = new Watchdog(
    store,
    new LeaseBounds(undefined),
    (failed, error) => failures.push({ names: failed.map(({ name }) => name), error }),
    timerAt,
  );
});

afterEach(() => {
  for (const tenure of tenures) tenure.end();
  expect(jest.getTimerCount()).toBe(0);
  jest.useRealTimers();
});

function watched(
  name: string,
  {
    leaseTime = 30_000,
    renewed = true,
    granted,
  }: { leaseTime?: number; renewed?: boolean; granted?: number } = {},
): Tenure {
  const grant = { owner: `me:${name}`, fencingToken: 1, grantedAt: now(), leaseTime: granted ?? leaseTime };
  const tenure = new Tenure(name, { leaseTime, renewed }, grant, (over) => {
    watchdog.forget(over);
  });
  tenures.push(tenure);
  watchdog.watch(tenure, now());
  return tenure;
}

const pass = (time: number) => jest.advanceTimersByTimeAsync(time);
const times = () => asked.map(({ at }) => at);
const names = () => asked.map(({ requests }) => requests.map(({ name }) => name));

describe('the watchdog, by itself,', () => {
  it('knows how much time the lease has that ends next, and none of what is not renewed', async () => {
    expect([watchdog.headroom(), watchdog.headroomShare(), watchdog.stuck]).toEqual([
      undefined,
      undefined,
      false,
    ]);
    watched('fixed', { leaseTime: 1_000, renewed: false });
    expect([watchdog.headroom(), watchdog.headroomShare()]).toEqual([undefined, undefined]);
    watched('long', { leaseTime: 90_000 });
    watched('short', { leaseTime: 9_000 });
    expect(watchdog.headroom()).toBeCloseTo(9_000 - 92, 0);
    expect(watchdog.headroomShare()).toBeGreaterThan(0.98);
    await pass(2_000);
    expect(watchdog.headroom()).toBeCloseTo(7_000 - 92, 0);
    expect(watchdog.headroomShare()).toBeCloseTo((7_000 - 92) / 9_000, 3);
  });

  it('is stuck while a lease is close to its end because the store does not answer', async () => {
    answer = () => new Promise(() => undefined);
    watched('a', { leaseTime: 9_000 });
    await pass(5_000);
    expect(watchdog.stuck).toBe(false);
    await pass(1_500);
    expect(watchdog.stuck).toBe(true);
  });

  it('renews at a third of what was granted, then at thirds of the lease', async () => {
    watched('a', { granted: 3_000 });
    await pass(25_000);
    expect(times()).toEqual([1_000, 11_000, 21_000]);
    expect(asked[0]?.requests).toEqual([{ name: 'a', owner: 'me:a', leaseTime: 30_000 }]);
  });

  it('sends along what is due within a tenth of its lease, and leaves the rest for its time', async () => {
    watched('a');
    await pass(3_000);
    watched('b');
    await pass(1);
    watched('c');
    await pass(10_000);
    expect(names()).toEqual([['a', 'b'], ['c']]);
    expect(times()).toEqual([10_000, 13_001]);
  });

  it('asks for no more than is left of maxHoldTime', async () => {
    watched('a').limit(now() + 25_000);
    await pass(10_000);
    expect(asked[0]?.requests[0]?.leaseTime).toBe(Math.ceil(15_002 / 0.99));
  });

  it('asks about a fixed lease without prolonging it, and at least every quarter of a second', async () => {
    const tenure = watched('a', { leaseTime: 600, renewed: false });
    const { deadline } = tenure;
    await pass(550);
    expect(times()).toEqual([250, 500]);
    expect(asked[0]?.requests).toEqual([{ name: 'a', owner: 'me:a', leaseTime: 0 }]);
    expect(tenure.deadline).toBe(deadline);
  });

  it('loses what the store says is gone, and says how', async () => {
    const mismatch = new LockKindMismatchError('c', { expected: 'plain lock', found: 'fair lock' });
    const answers = new Map([
      ['a', () => Promise.resolve<HoldState>('deleted')],
      ['b', () => Promise.resolve<HoldState>('taken')],
      ['c', () => Promise.reject(mismatch)],
    ]);
    answer = (name) => answers.get(name)?.() ?? Promise.resolve('held');
    const all = ['a', 'b', 'c', 'd'].map((name) => watched(name));
    await pass(10_000);
    expect(all.map(({ loss }) => loss?.reason)).toEqual(['deleted', 'taken', 'taken', undefined]);
    expect(all.map(({ loss }) => loss?.cause)).toEqual([undefined, undefined, mismatch, undefined]);
    expect(all.map(({ held }) => held)).toEqual([false, false, false, true]);
    expect(failures).toEqual([]);
    await pass(10_000);
    expect(names().at(-1)).toEqual(['d']);
  });

  it('tries again after pauses that double, up to a sixth of the lease', async () => {
    answer = () => Promise.reject(new Error('broken'));
    watched('a', { leaseTime: 6_000 });
    await pass(5_900);
    const pauses = times().map((time, index) => time - (times()[index - 1] ?? 0));
    expect(pauses).toEqual([2_000, 50, 100, 200, 400, 800, 1_000, 1_000]);
  });

  it('tells of the first failure of an outage, together for all that have failed by it', async () => {
    const away = new Error('away');
    const [shared, bare] = [new LockUnavailableError('a', { cause: away }), new LockUnavailableError('c')];
    answer = (name) => Promise.reject(name === 'c' ? bare : shared);
    for (const name of ['a', 'b', 'c']) watched(name);
    await pass(12_000);
    expect(failures).toEqual([
      { names: ['a', 'b'], error: away },
      { names: ['c'], error: bare },
    ]);
    answer = () => Promise.resolve('held');
    await pass(20_000);
    answer = () => Promise.reject(away);
    await pass(20_000);
    expect(failures.slice(2)).toEqual([{ names: ['a', 'b', 'c'], error: away }]);
  });

  it('takes a store that throws for one that does not answer', async () => {
    store.renew = () => {
      throw new Error('broken');
    };
    const tenure = watched('a');
    await pass(10_000);
    expect(failures).toMatchObject([{ names: ['a'], error: { message: 'broken' } }]);
    expect(tenure.held).toBe(true);
    await Promise.all(watchdog.look([tenure])).catch((error: unknown) => {
      failures.push({ names: [], error });
    });
    expect(failures).toHaveLength(2);
  });

  it('looks at once when it is told to, and prolongs nothing by that', async () => {
    const tenure = watched('a');
    const { deadline } = tenure;
    await Promise.all(watchdog.look([tenure]));
    expect(asked).toMatchObject([{ at: 0, requests: [{ name: 'a', leaseTime: 0 }] }]);
    expect([tenure.held, tenure.deadline]).toEqual([true, deadline]);
    answer = () => Promise.resolve('taken');
    await Promise.all(watchdog.look([tenure]));
    expect(tenure.loss?.reason).toBe('taken');
  });

  it('renews at once what is due when its timers are late', async () => {
    watched('a');
    await pass(9_000);
    watchdog.catchUp();
    await pass(0);
    // Due within a tenth of the lease.
    expect(times()).toEqual([9_000]);
    await pass(9_000);
    expect(times()).toEqual([9_000]);
    await pass(1_001);
    expect(times()).toEqual([9_000, 19_000]);
  });
});

describe('an extension', () => {
  it('lasts from its request on, and gives a fixed lease its looks', async () => {
    const tenure = watched('a', { leaseTime: 200, renewed: false });
    await watchdog.extend(tenure, 9_000);
    expect(tenure.remainingTime).toBeCloseTo(9_000 - 92, 0);
    expect(tenure.keptAtMostUntil).toBe(tenure.deadline);
    await pass(3_000);
    expect(times()).toEqual([0, 3_000]);
  });

  it('that gets no answer may have been carried out, and is asked for once more', async () => {
    answer = () => Promise.reject(new LockUnavailableError('a'));
    const tenure = watched('a');
    const { deadline } = tenure;
    const extending = expect(watchdog.extend(tenure, 60_000)).rejects.toMatchObject({
      code: 'LOCK_UNAVAILABLE',
    });
    await pass(50);
    await extending;
    expect(times()).toEqual([0, 50]);
    expect([tenure.held, tenure.deadline]).toEqual([true, deadline]);
    expect(tenure.keptAtMostUntil).toBeGreaterThanOrEqual(now() + 59_999);
  });

  it.each([
    ['a permanent error', new LockUnavailableError('a', { permanent: true })],
    ['an error of the program', new TypeError('broken')],
  ])('is not asked for again after %s', async (_, error) => {
    answer = () => Promise.reject(error);
    await expect(watchdog.extend(watched('a'), 60_000)).rejects.toBe(error);
    expect(asked).toHaveLength(1);
  });

  it('is not asked for again where the lease is released meanwhile', async () => {
    answer = () => Promise.reject(new LockUnavailableError('a'));
    const tenure = watched('a');
    const extending = expect(watchdog.extend(tenure, 60_000)).rejects.toMatchObject({ reason: 'released' });
    await pass(10);
    tenure.end();
    await pass(100);
    await extending;
    expect(asked).toHaveLength(1);
  });

  it('of what the store does not know loses it', async () => {
    answer = () => Promise.resolve('deleted');
    const tenure = watched('a');
    await expect(watchdog.extend(tenure, 60_000)).rejects.toMatchObject({
      code: 'LOCK_LOST',
      reason: 'deleted',
    });
    expect(tenure.held).toBe(false);
  });

  it('of what is released meanwhile fails, and the store may keep it until its end', async () => {
    let settle: (state: HoldState) => void = () => undefined;
    answer = () => new Promise((resolve) => (settle = resolve));
    const tenure = watched('a');
    const extending = expect(watchdog.extend(tenure, 60_000)).rejects.toMatchObject({
      code: 'LOCK_LOST',
      reason: 'released',
    });
    await pass(10);
    expect(tenure.keptAtMostUntil).toBeGreaterThan(now() + 59_000);
    tenure.end();
    settle('held');
    await extending;
  });
});
