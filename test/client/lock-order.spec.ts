import { beforeEach, describe, expect, it } from '@jest/globals';
import { type LockEvent, type LockService, MemoryLockStore } from '../../lib/index.js';
import { loggerOfEach } from '../support/logger.js';
import { servicesOfEach } from '../support/services.js';

let locks: LockService;
const logger = loggerOfEach();
const { open: service, events } = servicesOfEach(() => ({ store: new MemoryLockStore() }));

beforeEach(() => {
  locks = service();
});

const conflicts = () =>
  events.filter((event): event is Extract<LockEvent, { type: 'lock-order' }> => event.type === 'lock-order');
const warnings = () => logger.lines('warn');

/** Takes one lock under the other: names, or [name, label]. */
type Named = string | [name: string, label: string];
async function nest(held: Named, acquired: Named, of = locks): Promise<void> {
  const [outer, outerLabel] = typeof held === 'string' ? [held] : held;
  const [inner, innerLabel] = typeof acquired === 'string' ? [acquired] : acquired;
  await of.using(outer, { label: outerLabel }, () => of.using(inner, { label: innerLabel }, () => undefined));
}

describe('the order of locks', () => {
  it('is reported when locks are taken the other way round for the first time, with both ways', async () => {
    await nest(['order:1', 'order'], ['stock:1', 'stock']);
    expect(conflicts()).toEqual([]);
    for (const id of ['2', '3']) await nest([`stock:${id}`, 'stock'], [`order:${id}`, 'order']);
    const at = expect.stringMatching(/lock-order\.spec\.ts:\d+:\d+$/);
    expect(conflicts()).toEqual([
      {
        type: 'lock-order',
        name: 'order:2',
        label: 'order',
        heldName: 'stock:2',
        step: { held: 'stock', acquired: 'order', at },
        former: [{ held: 'order', acquired: 'stock', at }],
      },
    ]);
    expect(warnings()).toEqual([
      expect.stringMatching(
        /^Locks are taken in two orders, "order" under "stock" \(at .*\), and "stock" under "order" \(at .*\): two callers can/,
      ),
    ]);
  });

  it('is followed over several locks', async () => {
    await nest('a', 'b');
    await nest('b', 'c');
    await nest('a', 'c');
    expect(conflicts()).toEqual([]);
    await nest('c', 'a');
    // The shortest way.
    expect(conflicts()).toMatchObject([{ name: 'a', former: [{ held: 'a', acquired: 'c' }] }]);
    await nest('d', 'a');
    await nest('c', 'd');
    expect(conflicts()).toMatchObject([
      {},
      {
        name: 'd',
        former: [
          { held: 'd', acquired: 'a' },
          { held: 'a', acquired: 'c' },
        ],
      },
    ]);
  });

  it('does not exist between two locks of one label, and the cure is one multi-lock', async () => {
    await nest(['account:1', 'account'], ['account:2', 'account']);
    await nest(['account:2', 'account'], ['account:3', 'account']);
    const step = { held: 'account', acquired: 'account' };
    expect(conflicts()).toMatchObject([{ name: 'account:2', heldName: 'account:1', step, former: [] }]);
    expect(warnings()).toEqual([
      expect.stringMatching(
        /^The lock "account:2" is asked for under "account:1", and .* one multi-lock, which takes/,
      ),
    ]);
    await locks.using(['account:4', 'account:5'], { label: 'account' }, () => undefined);
    expect(conflicts()).toHaveLength(1);
  });

  it('counts each member of a multi-lock without a label by its name', async () => {
    await locks.using('a', () => locks.using(['b', 'c'], () => undefined));
    await locks.using(['b', 'd'], () => locks.using('a', () => undefined));
    expect(conflicts()).toMatchObject([{ name: 'a', heldName: 'b', former: [{ held: 'a', acquired: 'b' }] }]);
  });

  it('knows what is held around a scope of its own, and nothing of what is held elsewhere', async () => {
    const elsewhere = await locks.acquire('b');
    await nest('a', 'c');
    await elsewhere.release();
    await locks.using('a', () => locks.runInScope(() => locks.using('b', () => undefined)));
    await nest('b', 'a');
    expect(conflicts()).toHaveLength(1);
  });

  it('has nothing to say of what cannot wait: re-entered locks, waitTime 0, another side, another service', async () => {
    await locks.using('a', () => locks.using('b', () => locks.using('a', () => undefined)));
    await locks.using('b', () => locks.using('c', { waitTime: 0 }, () => undefined));
    await nest('c', 'b');
    await locks.using('d', async () => (await locks.tryAcquire('e'))?.release());
    await nest('e', 'd');
    const { read, write } = locks.getReadWriteLock('f');
    await write.using(() => read.using(() => undefined));
    await nest('x', 'y', service());
    await nest('y', 'x', service());
    expect(conflicts()).toEqual([]);
  });
});

describe('lockOrder', () => {
  it("'throw' refuses the call, each time, before anything is sent", async () => {
    const strict = service({ lockOrder: 'throw' });
    await nest('a', 'b', strict);
    for (let turn = 0; turn < 2; turn++) {
      await expect(nest('b', 'a', strict)).rejects.toMatchObject({
        code: 'LOCK_CONFIG',
        option: 'lockOrder',
        message: expect.stringMatching(/^lockOrder: Locks are taken in two orders/),
      });
    }
    expect(events.filter(({ type }) => type === 'acquired')).toHaveLength(4);
    expect(conflicts()).toEqual([]);
    await nest('a', 'b', strict);
  });

  it("'off' looks at nothing", async () => {
    const loose = service({ lockOrder: 'off' });
    await nest('a', 'b', loose);
    await nest('b', 'a', loose);
    expect(conflicts()).toEqual([]);
  });

  it('is one of three', () => {
    expect(() => service({ lockOrder: 'error' as 'throw' })).toThrow('lockOrder: must be warn, throw, off');
    expect(() => service({ deadlock: true as never })).toThrow('deadlock: must be break, report, off');
  });
});

it('is bounded: it says once that it is full, and has room again when a service has closed', async () => {
  await locks.using('outer', async () => {
    for (let n = 0; n < 1_005; n++) await locks.using(`inner:${String(n)}`, () => undefined);
  });
  const full = events.filter((event) => event.type === 'warning' && event.code === 'lock-order-full');
  expect(full).toHaveLength(1);
  const other = service();
  const bothWays = async () => {
    await nest('a', 'b', other);
    await nest('b', 'a', other);
    return conflicts().length;
  };
  expect(await bothWays()).toBe(0);
  await locks.close();
  expect(await bothWays()).toBe(1);
});

describe('a lock under another one', () => {
  it('has no label in common with another one by which work runs once in a period', async () => {
    const once = (name: string, work: () => Promise<unknown>) => locks.once(name, { period: 20 }, work);
    await once('bills', () => once('letters', () => Promise.resolve()));
    expect(conflicts()).toEqual([]);
  });
});
