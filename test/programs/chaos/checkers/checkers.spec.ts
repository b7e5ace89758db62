import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { fenceOf, queueOf } from '../../../support/keys.js';
import type { Attempt, PromiseNote } from '../history.js';
import { budget } from './budget.js';
import { deadlocks } from './deadlocks.js';
import { exclusion, overlaps } from './exclusion.js';
import { fencing } from './fencing.js';
import { history, hold, lagging, lossOfData, refused } from './histories.js';
import { linearizability } from './linearizability.js';
import { liveness } from './liveness.js';
import { loss } from './loss.js';
import { order } from './order.js';
import { promises } from './promises.js';
import { type Operation, unexplained } from './search.js';
import { severals } from './severals.js';
import { writes } from './writes.js';

it('finds a store that is asked in a loop', () => {
  const holds = Array.from({ length: 100 }, (_, index) => hold(index * 100));
  expect(budget(history(holds, { commands: 210 }))).toEqual([]);
  expect(budget(history(holds, { commands: 5_000 }))).toHaveLength(1);
  expect(budget(history(holds, { commands: 700 }))).toHaveLength(1);
  expect(budget(history(holds, { commands: 700, confirmed: true }))).toEqual([]);
  // A server that was restarted does not remember.
  expect(budget(history(holds))).toEqual([]);
});

describe('deadlocks', () => {
  /** A caller of a process that holds one lock from 0 on, and waits for another. */
  function nested(process: string, held: string, wanted: string, from: number, to: number): Attempt[] {
    const until = { deadlines: [{ at: 0, until: 20_000 }], releaseFrom: to + 1 };
    const outer = hold(0, { process, lock: held, ...until });
    return [outer, refused(from, to, { process, lock: wanted, under: outer.op })];
  }
  const step = (process: string, name: string) => ({ process, name, label: 'lock' });
  const cycle = [step('A', 'y'), step('B', 'x')];
  const told = (at: number) => [{ process: 'A', at, cycle, broken: true }];

  it('that are told of have been some', () => {
    const real = [...nested('A', 'x', 'y', 10, 900), ...nested('B', 'y', 'x', 20, 800)];
    expect(deadlocks(history(real, { deadlocks: told(850) }))).toEqual([]);
    // The first wait had ended when the second began.
    const never = [...nested('A', 'x', 'y', 10, 300), ...nested('B', 'y', 'x', 400, 800)];
    expect(deadlocks(history(never, { deadlocks: told(700) }))).toHaveLength(1);
    // They wait for each other only later.
    expect(deadlocks(history(real, { deadlocks: told(15) }))).toHaveLength(1);
    const others = [...nested('A', 'x', 'y', 10, 900), ...nested('B', 'z', 'x', 20, 800)];
    expect(deadlocks(history(others, { deadlocks: told(850) }))).toHaveLength(1);
    // A killed process waits for nothing.
    const killed = history(real, { deadlocks: told(850) });
    killed.processes.get('B')!.lastSeen = 15;
    expect(deadlocks(killed)).toHaveLength(1);
  });

  it('are told of when they last', () => {
    const lasting = [...nested('A', 'x', 'y', 10, 4_000), ...nested('B', 'y', 'x', 20, 4_000)];
    expect(deadlocks(history(lasting))).toHaveLength(1);
    expect(deadlocks(history(lasting, { deadlocks: told(2_000) }))).toEqual([]);
    const fault = { fault: 'network slow', severity: 'harmless', from: 1_000, to: 1_500 } as const;
    expect(deadlocks(history(lasting, { faults: [fault] }))).toEqual([]);
    const short = [...nested('A', 'x', 'y', 10, 2_500), ...nested('B', 'y', 'x', 20, 2_500)];
    expect(deadlocks(history(short))).toEqual([]);
    const chain = [...nested('A', 'x', 'y', 10, 4_000), ...nested('B', 'y', 'z', 20, 4_000)];
    expect(deadlocks(history(chain))).toEqual([]);
  });
});

describe('exclusion', () => {
  const reader = { kind: 'read-write', mode: 'shared', capacity: 1e9 } as const;
  const writer = { kind: 'read-write', mode: 'exclusive', capacity: 1e9 } as const;
  const permit = { kind: 'semaphore', mode: 'shared', capacity: 2 } as const;

  it('finds two that hold at the same time, and not two that hold in turn', () => {
    expect(exclusion(history([hold(0), hold(5)]))).toHaveLength(1);
    expect(exclusion(history([hold(0), hold(10)]))).toEqual([]);
    expect(exclusion(history([hold(0), hold(5, { lock: 'other' })]))).toEqual([]);
  });

  it('takes a hold to last until its release, its loss or its deadline, whichever is first', () => {
    expect(exclusion(history([hold(0, { releaseFrom: 50 }), hold(49)]))).toHaveLength(1);
    expect(exclusion(history([hold(0, { releaseFrom: 50, lost: 20 }), hold(30)]))).toEqual([]);
    expect(exclusion(history([hold(0, { releaseFrom: undefined }), hold(96)]))).toHaveLength(1);
    expect(exclusion(history([hold(0, { releaseFrom: undefined }), hold(98)]))).toEqual([]);
  });

  it('lets readers in together, and no writer with them', () => {
    expect(exclusion(history([hold(0, reader), hold(1, reader), hold(2, reader)]))).toEqual([]);
    expect(exclusion(history([hold(0, reader), hold(1, writer)]))).toHaveLength(1);
    expect(exclusion(history([hold(0, writer), hold(1, reader)]))).toHaveLength(1);
  });

  it('counts permits', () => {
    expect(exclusion(history([hold(0, permit), hold(1, permit)]))).toEqual([]);
    expect(exclusion(history([hold(0, permit), hold(1, permit), hold(2, permit)]))).toHaveLength(1);
  });

  it('does not take an owner that enters again for another', () => {
    const outer = hold(0, { releaseFrom: 50 });
    expect(exclusion(history([outer, hold(10, { outer: outer.op, call: 'nested' })]))).toEqual([]);
  });

  describe('after a loss of data', () => {
    const faults = [lossOfData(10, 11)];
    const forgotten = hold(0, { releaseFrom: undefined, lost: 45 });

    it('tells an overlap that it explains from one that it does not', () => {
      const explained = history([forgotten, hold(20)], { faults });
      expect(overlaps(explained)[0]?.explainedBy).toBe(faults[0]);
      expect(exclusion(explained)).toEqual([]);
      // Before it, after it for one that began later, and of another lock.
      expect(exclusion(history([hold(0), hold(5)], { faults }))).toHaveLength(1);
      expect(exclusion(history([hold(12), hold(15)], { faults }))).toHaveLength(1);
      expect(
        exclusion(history([forgotten, hold(20)], { faults: [{ ...faults[0]!, lock: 'other' }] })),
      ).toHaveLength(1);
    });

    it('wants the holder to be told by the next renewal', () => {
      const leaseTime = 3_000;
      const late = hold(0, {
        leaseTime,
        lost: 2_500,
        releaseFrom: undefined,
        deadlines: [{ at: 0, until: 2_960 }],
      });
      const other = hold(20, { leaseTime, releaseFrom: 2_900, deadlines: [{ at: 20, until: 2_980 }] });
      expect(exclusion(history([late, other], { faults }))[0]?.message).toContain('not announced');
      expect(exclusion(history([{ ...late, lost: 1_000 }, other], { faults }))).toEqual([]);
    });
  });

  it('agrees with looking at every pair', () => {
    const spans = fc.array(fc.tuple(fc.integer({ min: 0, max: 300 }), fc.integer({ min: 1, max: 40 })), {
      maxLength: 12,
    });
    fc.assert(
      fc.property(spans, (drawn) => {
        const holds = drawn.map(([granted, lasts]) => hold(granted, { releaseFrom: granted + lasts }));
        const meet = (a: Attempt, b: Attempt) => a.granted! < b.releaseFrom! && b.granted! < a.releaseFrom!;
        const any = holds.some((a, index) => holds.slice(index + 1).some((b) => meet(a, b)));
        expect(exclusion(history(holds)).length > 0).toBe(any);
      }),
    );
  });
});

describe('fencing', () => {
  const shared = { kind: 'semaphore', mode: 'shared', capacity: 5 } as const;
  const update = (token: number, from: number, to: number) => ({ lock: 'lock', token, from, to });

  it('wants tokens to grow from one hold to the next', () => {
    expect(fencing(history([hold(0, { token: 5 }), hold(20, { token: 6 })]))).toEqual([]);
    expect(fencing(history([hold(0, { token: 6 }), hold(20, { token: 5 })])).length).toBeGreaterThan(0);
    // The later one had asked first.
    expect(
      fencing(history([hold(0, { token: 6 }), hold(20, { token: 5, invoked: -5 })])).length,
    ).toBeGreaterThan(0);
  });

  it('wants it of shared holds as well, where one had it before the other asked', () => {
    expect(
      fencing(history([hold(0, { ...shared, token: 6 }), hold(5, { ...shared, token: 5 })])),
    ).toHaveLength(1);
    expect(
      fencing(history([hold(0, { ...shared, token: 6 }), hold(5, { ...shared, token: 5, invoked: -5 })])),
    ).toEqual([]);
  });

  it('finds a token that was given out twice', () => {
    const twice = [hold(0, { ...shared, token: 5 }), hold(1, { ...shared, token: 5, invoked: -5 })];
    expect(fencing(history(twice))).toHaveLength(1);
  });

  it('leaves out holders of what the store has forgotten', () => {
    const owner = 'one tenure';
    const faults = [lossOfData(5, 6)];
    const holds = [hold(0, { owner, token: 5 }), hold(20, { token: 9 }), hold(40, { owner, token: 6 })];
    expect(fencing(history(holds, { faults }))).toEqual([]);
    expect(fencing(history(holds)).length).toBeGreaterThan(0);
  });

  it('finds an update that was lost', () => {
    expect(fencing(history([], { updates: [update(1, 0, 1), update(1, 1, 2), update(3, 2, 3)] }))).toEqual(
      [],
    );
    expect(fencing(history([], { updates: [update(1, 0, 1), update(2, 0, 1)] }))).toHaveLength(1);
    expect(fencing(history([], { updates: [update(2, 0, 1), update(1, 1, 2)] }))).toHaveLength(1);
  });
});

describe('linearizability', () => {
  const shared = { kind: 'semaphore', mode: 'shared', capacity: 2 } as const;
  const extended = (from: number, to: number, outcome: 'ok' | 'lost' | 'unknown') => [
    { from, to, outcome, leaseTime: 100 },
  ];
  const holds = (...attempts: Parameters<typeof history>[0]) =>
    linearizability(history(attempts)).length === 0;

  it('explains holds in turn, and not two at once', () => {
    expect(holds(hold(0), hold(20), hold(40))).toBe(true);
    expect(holds(hold(0, { releaseFrom: 50 }), hold(20))).toBe(false);
  });

  it('knows that a hold ends by itself at its deadline, and not before', () => {
    expect(holds(hold(0, { releaseFrom: undefined }), hold(98))).toBe(true);
    expect(holds(hold(0, { releaseFrom: undefined }), hold(90))).toBe(false);
  });

  it('knows that a hold is over when its holder is told so, and not before', () => {
    const lost = hold(0, { releaseFrom: 90, lost: 50 });
    const extension = (to: number) => [{ from: 40, to, outcome: 'lost' as const, leaseTime: 100 }];
    expect(holds(lost, hold(52))).toBe(true);
    expect(holds(lost, hold(48))).toBe(false);
    expect(holds({ ...lost, extensions: extension(50) })).toBe(true);
    expect(holds({ ...lost, extensions: extension(48) })).toBe(false);
  });

  it('wants a reason for "taken"', () => {
    expect(holds(hold(0), refused(2, 4))).toBe(true);
    expect(holds(hold(0), refused(20, 30))).toBe(false);
  });

  it('wants tokens in the order of the grants', () => {
    expect(holds(hold(0, { token: 2 }), hold(20, { token: 1 }))).toBe(false);
    // Both asked at the same time, so either may have been first.
    const one = hold(5, { ...shared, token: 2, invoked: 0 });
    expect(holds(one, hold(6, { ...shared, token: 1, invoked: 0 }))).toBe(true);
  });

  it('counts permits and how often a scope has entered', () => {
    expect(holds(hold(0, shared), hold(1, shared))).toBe(true);
    expect(holds(hold(0, shared), hold(1, shared), hold(2, shared))).toBe(false);
    const outer = hold(0, { releaseFrom: 50 });
    const inner = hold(10, { outer: outer.op, call: 'nested', token: outer.token! });
    expect(holds(outer, inner, hold(60))).toBe(true);
    expect(holds(outer, inner, hold(30))).toBe(false);
    expect(holds(outer, { ...inner, invoked: 69, granted: 70, releaseFrom: 72, releaseTo: 73 })).toBe(false);
  });

  it('lets only the holder extend', () => {
    const late = { releaseFrom: undefined, deadlines: [{ at: 0, until: 97 }] };
    expect(holds(hold(0, { releaseFrom: 60, extensions: extended(50, 55, 'ok') }))).toBe(true);
    expect(
      holds(hold(0, { ...late, extensions: extended(150, 160, 'ok') }), hold(110, { releaseFrom: 190 })),
    ).toBe(false);
    expect(
      holds(hold(0, { ...late, extensions: extended(150, 160, 'lost') }), hold(110, { releaseFrom: 190 })),
    ).toBe(true);
    expect(holds(hold(0, { releaseFrom: 60, extensions: extended(50, 55, 'lost') }))).toBe(false);
  });

  it('does not judge what the store has forgotten', () => {
    const faults = [lossOfData(10, 11)];
    const attempts = [hold(0, { releaseFrom: 50 }), hold(20), refused(60, 70)];
    expect(linearizability(history(attempts, { faults }))).toEqual([]);
    expect(linearizability(history(attempts))).toHaveLength(1);
  });
});

describe('liveness', () => {
  const bounds = { recovery: 3_000, prompt: 300, perDead: 0 };

  it('finds a lock that is free while a caller waits', () => {
    expect(liveness(history([hold(0), hold(300, { invoked: 5 })]), bounds)).toEqual([]);
    expect(liveness(history([hold(0), hold(400, { invoked: 5 })]), bounds)).toHaveLength(1);
    // Nobody waited.
    expect(liveness(history([hold(0), hold(400)]), bounds)).toEqual([]);
  });

  it('finds a caller that waits until the end', () => {
    const unanswered = refused(20, 0);
    delete unanswered.answered;
    expect(liveness(history([hold(0), unanswered]), bounds)).toHaveLength(1);
  });

  it('counts from the end of the last fault, and allows a lease then', () => {
    const faults = [lossOfData(0, 1_000)];
    const holds = (granted: number) => [hold(0), hold(granted, { invoked: 5 })];
    expect(liveness(history(holds(3_900), { faults, healed: 1_000 }), bounds)).toEqual([]);
    expect(liveness(history(holds(4_100), { faults, healed: 1_000 }), bounds)).toHaveLength(1);
  });

  it('allows for the time in which a process did not run', () => {
    const holds = [hold(0), hold(400, { invoked: 5 })];
    expect(liveness(history(holds, { processes: lagging('A', 50, 250) }), bounds)).toEqual([]);
  });

  it('finds what is left when all have gone', () => {
    const clean = { keys: [{ key: fenceOf('lock'), ttl: 1_000 }], channels: [], clients: 0, hanging: [] };
    const found = (left: object) => liveness(history([], { residue: { ...clean, ...left } }), bounds).length;
    expect(found({})).toBe(0);
    expect(found({ keys: [{ key: fenceOf('lock'), ttl: -1 }] })).toBe(1);
    expect(found({ keys: [{ key: queueOf('lock'), ttl: 1_000 }] })).toBe(1);
    expect(found({ channels: ['lock'] })).toBe(1);
    expect(found({ clients: 2 })).toBe(1);
    expect(found({ hanging: ['1.1'] })).toBe(1);
  });
});

describe('loss', () => {
  const unreleased = (lost?: number) =>
    hold(0, { releaseFrom: undefined, ...(lost !== undefined && { lost }) });

  it('has to be announced at the deadline', () => {
    expect(loss(history([unreleased(97)]))).toEqual([]);
    expect(loss(history([unreleased(140)]))).toEqual([]);
    expect(loss(history([unreleased(150)]))).toHaveLength(1);
    expect(loss(history([unreleased()]))).toHaveLength(1);
  });

  it('is no loss when it was released in time', () => {
    expect(loss(history([hold(0)]))).toEqual([]);
    expect(loss(history([hold(0, { releaseFrom: 200 })]))).toHaveLength(1);
  });

  it('counts only the time in which the process ran', () => {
    expect(loss(history([unreleased(3_000)], { processes: lagging('A', 90, 2_990) }))).toEqual([]);
    expect(loss(history([unreleased(3_000)], { processes: lagging('A', 90, 2_900) }))).toHaveLength(1);
  });

  it('cannot be asked of a process that was dead by then', () => {
    const processes = lagging('A', 0, 0);
    processes.get('A')!.lastSeen = 60;
    expect(loss(history([unreleased()], { processes }))).toEqual([]);
  });
});

describe('order', () => {
  const fair = (invoked: number, granted: number, told = {}) =>
    hold(granted, { kind: 'fair', invoked, ...told });

  describe('order', () => {
    it('finds a caller that was served before an earlier one', () => {
      expect(order(history([fair(0, 1_000), fair(600, 1_100)]))).toEqual([]);
      expect(order(history([fair(0, 1_100), fair(600, 1_000)]))).toHaveLength(1);
    });

    it('does not judge callers that came at about the same time', () => {
      expect(order(history([fair(0, 1_100), fair(100, 1_000)]))).toEqual([]);
    });

    it('excuses whose process did not run or could not reach the store', () => {
      const holds = [fair(0, 1_100), fair(600, 1_000, { process: 'B' })];
      expect(order(history(holds, { processes: lagging('A', 100, 800) }))).toEqual([]);
      expect(order(history(holds, { server: { lags: [{ from: 100, to: 800 }] } }))).toEqual([]);
      const fault = { fault: 'cut', severity: 'outage', from: 100, to: 200 } as const;
      expect(order(history(holds, { faults: [fault] }))).toEqual([]);
      expect(order(history(holds, { faults: [{ ...fault, process: 'A' }] }))).toEqual([]);
      expect(order(history(holds, { faults: [{ ...fault, process: 'B' }] }))).toHaveLength(1);
    });
  });

  describe('order of plain locks', () => {
    const LEASE = { deadlines: [{ at: 0, until: 5_000 }] };
    /** Held for 100 ms unless told otherwise. */
    const plain = (process: string, invoked: number, granted: number, told = {}) =>
      hold(granted, { process, invoked, releaseFrom: granted + 100, ...LEASE, ...told });
    const before = plain('A', 0, 0, { releaseFrom: 999 });

    it('finds a process that is passed by a later one', () => {
      const passed = [before, plain('B', 100, 1_102), plain('C', 600, 1_000)];
      expect(order(history(passed))).toHaveLength(1);
      expect(order(history([before, plain('B', 100, 1_000), plain('C', 600, 1_102)]))).toEqual([]);
      expect(order(history(passed, { queues: false }))).toEqual([]);
    });

    it('finds a process that serves itself again', () => {
      const again = [before, plain('A', 10, 1_002), plain('B', 100, 1_104)];
      expect(order(history(again))).toHaveLength(1);
      // In one tenure, which may go from one caller to the next.
      const batch = [before, plain('A', 10, 1_002, { owner: before.owner }), plain('B', 100, 1_104)];
      expect(order(history(batch))).toEqual([]);
    });
  });
});

describe('promises', () => {
  type Told = Extract<PromiseNote, { type: 'told' }>;
  type Success = Extract<PromiseNote, { type: 'success' }>;

  const told = (process: string, number: number, before: number, more: Partial<Told> = {}): PromiseNote => ({
    ...{ type: 'told', process, number, before, at: before + 1, promise: 'election', ...more },
  });
  const resumed = (process: string, ticket: string): PromiseNote => ({
    type: 'resumed',
    process,
    at: 5,
    ticket,
    token: 1,
  });
  const success = (
    process: string,
    begun: number,
    worked: number,
    more: Partial<Success> = {},
  ): PromiseNote => ({
    ...{ type: 'success', process, begun, worked, at: worked + 5, period: 400, ...more },
  });

  /** Something of each, so that nothing is missed. */
  const SOME = [
    told('A', 1, 0),
    told('A', 1, 0, { promise: 'lease' }),
    resumed('A', 'x'),
    success('A', 0, 10),
  ];
  const found = (...notes: PromiseNote[]) =>
    promises(history([], { notes: [...SOME, ...notes] })).map(({ message }) => message);

  it('says nothing of a run without them, and of one that keeps them', () => {
    expect(promises(history([]))).toEqual([]);
    expect(found(told('B', 2, 10), told('B', 2, 20), told('A', 3, 30), resumed('B', 'y'))).toEqual([]);
    expect(found(success('B', 400, 420), success('A', 830, 900))).toEqual([]);
  });

  it('misses what did not happen', () => {
    expect(promises(history([], { notes: [] }))).toHaveLength(3);
  });

  it.each(['election', 'lease'] as const)('finds a holder that is told after the next (%s)', (promise) => {
    expect(found(told('B', 2, 10, { promise }), told('A', 1, 12, { promise }))).toEqual([
      `${promise}: A was told that it holds 1 after B had been told with 2`,
    ]);
  });

  it('finds a number that two processes have, and keeps elections and leases apart', () => {
    expect(found(told('B', 1, 10))).toHaveLength(1);
    expect(found(told('B', 2, 10), told('A', 1, 12, { promise: 'lease' }))).toEqual([]);
  });

  it('believes a process that was stopped between the question and its line', () => {
    expect(found(told('B', 2, 10), told('A', 1, 5, { at: 500 }))).toEqual([]);
  });

  it('finds a ticket that is resumed twice', () => {
    expect(found(resumed('B', 'x'))).toEqual(['ticket x was resumed by A and by B']);
  });

  it('finds work that succeeds twice in a period', () => {
    expect(found(success('B', 200, 250))).toEqual(['once: B began 190 ms after the success of A']);
    expect(found(success('B', 5, 50))).toHaveLength(1);
  });
});

describe('unexplained', () => {
  const find = (operations: readonly Operation<number>[]) =>
    unexplained<number, Operation<number>>(operations, 0, String);

  /** A register: writes change it, reads say what it was. */
  const write = (value: number, invoked: number, returned: number): Operation<number> => ({
    invoked,
    returned,
    apply: () => value,
  });
  const read = (value: number, invoked: number, returned: number): Operation<number> => ({
    invoked,
    returned,
    observes: true,
    apply: (state) => (state === value ? state : undefined),
  });

  /** Every order that agrees with the times, with and without each operation that never returned. */
  function explains(operations: readonly Operation<number>[], state: number): boolean {
    if (operations.every(({ returned }) => returned === Infinity)) return true;
    const firstReturn = Math.min(...operations.map(({ returned }) => returned));
    return operations.some((operation) => {
      if (operation.invoked > firstReturn) return false;
      const next = operation.apply(state, 0);
      return (
        next !== undefined &&
        explains(
          operations.filter((other) => other !== operation),
          next,
        )
      );
    });
  }

  it('finds an order, or the operation that has none', () => {
    expect(find([write(1, 0, 10), read(1, 5, 8)])).toBeUndefined();
    expect(find([write(1, 0, 10), read(0, 5, 8)])).toBeUndefined();
    const stale = read(0, 11, 12);
    expect(find([write(1, 0, 10), stale])).toBe(stale);
  });

  it('does not let what was seen be undone', () => {
    const back = read(0, 8, 9);
    expect(find([write(1, 0, 20), read(1, 5, 7), back])).toBe(back);
  });

  it('lets an operation that never returned take effect at any time, or never', () => {
    expect(find([write(1, 0, Infinity), read(0, 50, 60), read(1, 70, 80)])).toBeUndefined();
    expect(find([write(1, 0, Infinity), read(1, 50, 60), read(0, 70, 80)])).toBeDefined();
  });

  it('agrees with trying every order', () => {
    const operation = fc
      .record({
        kind: fc.constantFrom(write, read),
        value: fc.integer({ min: 0, max: 2 }),
        invoked: fc.integer({ min: 0, max: 20 }),
        lasts: fc.oneof(fc.integer({ min: 1, max: 15 }), fc.constant(Infinity)),
      })
      .map(({ kind, value, invoked, lasts }) => kind(value, invoked, invoked + lasts));
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 6 }), (operations) => {
        expect(find(operations) === undefined).toBe(explains(operations, 0));
      }),
      { numRuns: 2_000 },
    );
  });
});

describe('severals', () => {
  const bounds = { recovery: 3_000, prompt: 300, perDead: 0 };

  /** One call of B for a and b, which is granted at last. */
  const call = (invoked: number, granted: number): Attempt[] =>
    ['a', 'b'].map((lock) => hold(granted, { process: 'B', lock, call: 'try', several: 7, invoked }));

  const held = (lock: string, from: number, to: number) =>
    hold(from, { lock, releaseFrom: to, releaseTo: to });

  it('finds a call that waits while all of its locks are free', () => {
    expect(severals(history(call(0, 300)), bounds)).toEqual([]);
    expect(severals(history(call(0, 310)), bounds)).toHaveLength(1);
  });

  it('lets a call wait as long as one of them is held', () => {
    const busy = [held('a', 100, 600), held('b', 500, 1_000)];
    expect(severals(history([...busy, ...call(0, 1_200)]), bounds)).toEqual([]);
    expect(severals(history([...busy, ...call(0, 1_400)]), bounds)).toHaveLength(1);
    // Others are not in its way.
    expect(severals(history([held('c', 0, 1_000), ...call(0, 1_000)]), bounds)).toHaveLength(1);
  });

  it('allows a lease after the last fault, and the time for which a process did not run', () => {
    const faults = [lossOfData(0, 1_000)];
    expect(severals(history(call(0, 3_900), { faults, healed: 1_000 }), bounds)).toEqual([]);
    expect(severals(history(call(0, 4_100), { faults, healed: 1_000 }), bounds)).toHaveLength(1);
    expect(severals(history(call(0, 700), { processes: lagging('B', 100, 600) }), bounds)).toEqual([]);
  });
});

describe('writes', () => {
  const write = (at: number, told: Parameters<typeof hold>[1] = {}) =>
    hold(0, { releaseFrom: undefined, writes: [{ before: at, at }], ...told });

  it('allows writes before the deadline, and none after it', () => {
    const judged = (at: number) => {
      const deadlines = [0, at].map((seen) => ({ at: seen, until: 97 }));
      return writes(history([write(at, { deadlines })]));
    };
    expect(judged(50)).toEqual([]);
    expect(judged(99)).toHaveLength(1);
  });

  it('allows none after the loss was announced, or after the release', () => {
    expect(writes(history([write(50, { lost: 40 })]))[0]?.message).toContain('told of the loss');
    expect(writes(history([write(50, { releaseFrom: 40 })]))[0]?.message).toContain('after its release');
  });

  it('finds a promise of more than the lease', () => {
    const promised = (at: number, until: number, told = {}) =>
      writes(history([hold(0, { deadlines: [{ at, until }], ...told })]));
    expect(promised(0, 97)).toEqual([]);
    expect(promised(0, 100)).toHaveLength(1);
    expect(promised(60, 157)).toEqual([]);
    // A fixed lease counts from its grant, however late one looks.
    expect(promised(60, 157, { renewed: false })).toHaveLength(1);
    const extensions = [{ from: 50, to: 55, outcome: 'ok', leaseTime: 200 }] as const;
    expect(promised(60, 250, { extensions })).toEqual([]);
    expect(promised(60, 270, { extensions })).toHaveLength(1);
  });

  it('finds a lease that was over when it was granted, unless the process did not run', () => {
    const over = hold(500, { deadlines: [{ at: 500, until: 500 }] });
    expect(writes(history([over]))).toHaveLength(1);
    expect(writes(history([over], { processes: lagging('A', 450, 499) }))).toEqual([]);
  });
});
