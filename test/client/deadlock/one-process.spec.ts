import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import {
  isLockTimeoutError,
  type Lock,
  type LockEvent,
  type LockTimeoutError,
  type LockService,
  MemoryLockStore,
} from '../../../lib/index.js';
import { pass, useVirtualTime } from '../../support/virtual-time.js';
import { loggerOfEach } from '../../support/logger.js';
import { servicesOfEach } from '../../support/services.js';

useVirtualTime();

let store: MemoryLockStore;
let locks: LockService;
const logger = loggerOfEach();
const { open: service, events } = servicesOfEach(() => ({ store, lockOrder: 'off', label: 'api-1' }));

beforeEach(() => {
  store = new MemoryLockStore();
  locks = service();
});

const deadlocks = () =>
  events.filter((event): event is Extract<LockEvent, { type: 'deadlock' }> => event.type === 'deadlock');

/** Holds the first lock, then waits for the second: 'done', or the error. */
async function nest(first: Lock, second: Lock, { gap = 20, waitTime = 2_000 } = {}): Promise<unknown> {
  return await first
    .using(async () => {
      await pass(gap);
      return await second.using({ waitTime }, () => 'done');
    })
    .catch((error: unknown) => error);
}

const broken = (outcomes: readonly unknown[]) =>
  outcomes.filter(
    (outcome): outcome is LockTimeoutError => isLockTimeoutError(outcome) && outcome.reason === 'deadlock',
  );

describe('two callers of one process that wait for each other', () => {
  it('are found at once: the one that began to wait last ends, and the other goes on', async () => {
    const [a, b] = [locks.getLock('order:7'), locks.getLock('stock:7')];
    const begun = performance.now();
    const outcomes = await Promise.all([nest(a, b, { gap: 20 }), nest(b, a, { gap: 40 })]);
    // Without it this takes the wait time.
    expect(performance.now() - begun).toBeLessThan(1_500);
    expect(outcomes[0]).toBe('done');
    const cycle = [
      { name: 'order:7', label: 'lock', process: 'api-1' },
      { name: 'stock:7', label: 'lock', process: 'api-1' },
    ];
    expect(outcomes[1]).toMatchObject({ code: 'LOCK_TIMEOUT', reason: 'deadlock', key: 'order:7', cycle });
    expect((outcomes[1] as Error).message).toMatch(
      /^The lock "order:7" is busy after a wait of \d+ ms: deadlock, api-1 waits for "order:7", api-1 waits for "stock:7"$/,
    );
    expect(deadlocks()).toEqual([
      { type: 'deadlock', name: 'stock:7', label: 'lock', cycle: cycle.toReversed(), broken: false },
      { type: 'deadlock', name: 'order:7', label: 'lock', cycle, broken: true },
    ]);
    expect(events.filter(({ type }) => type === 'timed-out')).toMatchObject([{ reason: 'deadlock' }]);
    const lines = logger.lines('warn');
    expect(lines).toEqual([
      'Deadlock: api-1 waits for "stock:7", api-1 waits for "order:7"',
      'Deadlock, the wait for "order:7" ends: api-1 waits for "order:7", api-1 waits for "stock:7"',
    ]);
  });

  const kinds: [string, () => readonly [Lock, Lock]][] = [
    ['fair locks', () => [locks.getFairLock('a'), locks.getFairLock('b')]],
    ['a write lock and a plain one', () => [locks.getReadWriteLock('a').write, locks.getLock('b')]],
    ['semaphores of one permit', () => [locks.getSemaphore('a', 1), locks.getSemaphore('b', 1)]],
    [
      'a plain lock and a multi-lock',
      () => [locks.getLock('a'), locks.getMultiLock([locks.getLock('b'), locks.getLock('c')])],
    ],
  ];
  it.each(kinds)('with %s', async (_, locksOf) => {
    const [a, b] = locksOf();
    const outcomes = await Promise.all([nest(a, b), nest(b, a)]);
    expect(broken(outcomes)).toHaveLength(1);
    expect(outcomes).toContain('done');
  });
});

describe('more than two', () => {
  it('three callers in a circle', async () => {
    const all = ['a', 'b', 'c'].map((name) => locks.getLock(name));
    const outcomes = await Promise.all(all.map((lock, n) => nest(lock, all[(n + 1) % 3]!)));
    expect(broken(outcomes)).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome === 'done')).toHaveLength(2);
    expect(deadlocks()).toHaveLength(3);
  });

  it('a writer that waits for two readers, of which one waits for what the writer holds', async () => {
    const { read, write } = locks.getReadWriteLock('rw');
    const other = read.using(() => pass(400));
    const outcomes = await Promise.all([
      nest(read, locks.getLock('x')),
      nest(locks.getLock('x'), write, { gap: 60 }),
    ]);
    expect(outcomes[0]).toBe('done');
    expect(broken(outcomes)).toHaveLength(1);
    await other;
  });

  it('a reader behind a waiting writer waits for the readers that the writer waits for', async () => {
    const { read, write } = locks.getReadWriteLock('rw');
    const x = locks.getLock('x');
    const holder = nest(read, x, { gap: 100 });
    await pass(20);
    const writer = write.using({ waitTime: 3_000 }, () => 'written');
    await pass(20);
    const behind = nest(x, locks.getReadWriteLock('rw').read, { gap: 10 });
    const outcomes = await Promise.all([holder, behind]);
    expect(broken(outcomes)).toHaveLength(1);
    expect(await writer).toBe('written');
  });

  it('a permit is waited for from any holder, so all of them have to be in it', async () => {
    const permits = () => locks.getSemaphore('s', 2);
    const x = locks.getLock('x');
    // One of two holders is free to go on: no deadlock.
    const free = permits().using(() => pass(400));
    const outcomes = await Promise.all([nest(permits(), x, { gap: 30 }), nest(x, permits(), { gap: 20 })]);
    await free;
    expect(outcomes).toEqual(['done', 'done']);
    const y = locks.getLock('y');
    const both = await Promise.all([
      nest(permits(), x, { gap: 60 }),
      nest(permits(), y, { gap: 60 }),
      x.using(() => nest(y, permits(), { gap: 20 })),
    ]);
    expect(broken(both)).toHaveLength(1);
    expect(both.filter((outcome) => outcome === 'done')).toHaveLength(2);
  });
});

describe('many callers under locks of their own that wait for one lock', () => {
  it('cost no question to the store, and a deadlock among them is found', async () => {
    const inspect = jest.spyOn(store, 'inspect');
    const hot = await locks.acquire('hot');
    const all = Array.from({ length: 300 }, (_, n) =>
      nest(locks.getLock(`own:${String(n)}`), locks.getLock('hot'), { gap: 0, waitTime: 5_000 }),
    );
    await pass(150);
    expect(inspect).not.toHaveBeenCalled();
    const outcomes = await Promise.all([
      nest(locks.getLock('a'), locks.getLock('b'), { gap: 20 }),
      nest(locks.getLock('b'), locks.getLock('a'), { gap: 40 }),
    ]);
    expect(broken(outcomes)).toHaveLength(1);
    expect(inspect.mock.calls.length).toBeLessThan(10);
    await hot.release();
    expect(new Set(await Promise.all(all))).toEqual(new Set(['done']));
  });
});

describe('what is no deadlock', () => {
  it('is left alone: a chain, callers that hold nothing, and a wait that has ended', async () => {
    const [a, b, c] = ['a', 'b', 'c'].map((name) => locks.getLock(name)) as [Lock, Lock, Lock];
    const held = await c.acquire();
    const outcomes = Promise.all([
      nest(a, b),
      nest(b, c),
      nest(locks.getLock('d'), a),
      a.using({ waitTime: 2_000 }, () => 'done'),
    ]);
    await pass(150);
    await held.release();
    expect(await outcomes).toEqual(['done', 'done', 'done', 'done']);
    expect(deadlocks()).toEqual([]);
  });

  it('is what work starts under a lock and does not wait for, which looks like a wait for itself', async () => {
    const other = service({ label: 'other' });
    const waiting = await locks.using('a', async () => {
      const contender = other.acquire('a', { waitTime: 2_000 });
      const inScope = locks.runInScope(() => locks.acquire('a', { waitTime: 2_000 }));
      await pass(80);
      return () => [contender, inScope];
    });
    await Promise.all(waiting().map((lease) => lease.then((granted) => granted.release())));
    expect(deadlocks()).toEqual([]);
  });

  it('is a circle that ends by itself, because a fixed lease in it ends before the wait for it', async () => {
    const [a, b] = [locks.getLock('a'), locks.getLock('b')];
    const fixed = a.using({ leaseTime: 300 }, async () => {
      await pass(20);
      return await b.using({ waitTime: 2_000 }, () => 'done');
    });
    expect(await Promise.all([fixed, nest(b, a, { gap: 20 })])).toEqual(['done', 'done']);
    expect(deadlocks()).toEqual([]);
  });
});

describe('deadlock', () => {
  it("'report' tells each member once, and all go on waiting", async () => {
    const reporting = service({ deadlock: 'report', label: 'reports' });
    const [a, b] = [reporting.getLock('a'), reporting.getLock('b')];
    const outcomes = await Promise.all([nest(a, b, { waitTime: 900 }), nest(b, a, { waitTime: 1_200 })]);
    expect(outcomes.map((outcome) => (isLockTimeoutError(outcome) ? outcome.reason : outcome))).toEqual([
      'timeout',
      'done',
    ]);
    expect(
      deadlocks()
        .map(({ name, broken }) => [name, broken])
        .sort(),
    ).toEqual([
      ['a', false],
      ['b', false],
    ]);
  });

  it("'off' sees nothing", async () => {
    const blind = service({ deadlock: 'off' });
    const outcomes = await Promise.all([
      nest(blind.getLock('a'), blind.getLock('b'), { waitTime: 300 }),
      nest(blind.getLock('b'), blind.getLock('a'), { waitTime: 400 }),
    ]);
    expect(outcomes).toMatchObject([{ code: 'LOCK_TIMEOUT', reason: 'timeout' }, 'done']);
    expect(deadlocks()).toEqual([]);
  });

  it('a tryAcquire that waits gives null, as for any busy lock', async () => {
    const [a, b] = [locks.getLock('a'), locks.getLock('b')];
    const tries = (first: Lock, second: Lock, gap: number) =>
      first.using(async () => {
        await pass(gap);
        const lease = await second.tryAcquire({ waitTime: 2_000 });
        await lease?.release();
        return lease === null;
      });
    expect(await Promise.all([tries(a, b, 20), tries(b, a, 40)])).toEqual([false, true]);
    expect(deadlocks().map(({ broken }) => broken)).toEqual([false, true]);
  });
});
