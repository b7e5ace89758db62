import { describe, expect, it } from '@jest/globals';
import type { Fault } from './faults/fault.js';
import { endOf, readJournal } from './history.js';
import { Random } from './random.js';
import { mixOf, type Planned } from './schedule.js';

const lines = (...entries: object[]) => entries.map((entry) => `${JSON.stringify(entry)}\n`).join('');

it('puts the lines of a journal together, without one that a kill has cut off', () => {
  const text = lines(
    { at: 1, type: 'invoke', op: 7, lock: 'a', kind: 'lock', mode: 'exclusive', leaseTime: 100 },
    { at: 2, type: 'grant', op: 7, owner: 'me:1', token: 5, deadline: 98 },
    { at: 40, type: 'lag', from: 10 },
    { at: 50, type: 'deadline', op: 7, deadline: 130 },
    { at: 60, type: 'release', op: 7 },
  );
  const { process, attempts } = readJournal('A', `${text}{"at":61,"type":"rel`);
  expect(process).toMatchObject({ lags: [{ from: 10, to: 40 }], lastSeen: 60, ended: false });
  expect(attempts).toHaveLength(1);
  expect(attempts[0]).toMatchObject({
    process: 'A',
    op: 7,
    invoked: 1,
    granted: 2,
    token: 5,
    releaseFrom: 60,
  });
  expect(attempts[0]?.releaseTo).toBeUndefined();
  expect(endOf(attempts[0]!)).toBe(60);
});

describe('mixOf', () => {
  const fault = (name: string, told: Partial<Fault> = {}): Fault => ({
    name,
    group: 'server',
    severity: 'outage',
    lasts: [10, 100],
    strike: async () => () => undefined,
    ...told,
  });
  const faults = [
    fault('cut'),
    fault('pause', { apart: 'pause' }),
    fault('flush', { severity: 'loss' }),
    fault('step', { severity: 'loss', apart: 'clock' }),
    fault('nothing', { severity: 'harmless' }),
  ];
  const told = (plan: readonly Planned[]) =>
    plan.map(({ at, lasts, fault, random }) => ({ at, lasts, name: fault.name, drawn: random.next() }));

  it('plans the same for the same seed, and something else for another', () => {
    const plan = (seed: number) => told(mixOf(faults, new Random(seed), 1_000, 20));
    expect(plan(7)).toEqual(plan(7));
    expect(plan(7)).not.toEqual(plan(8));
  });

  it('keeps steps of the clock apart from crashes and losses, and plans both', () => {
    const plans = Array.from({ length: 100 }, (_, seed) =>
      told(mixOf(faults, new Random(seed), 1_000, 20)).map(({ name }) => name),
    );
    const [stepped, others] = [true, false].map((with_) =>
      plans.filter((names) => names.includes('step') === with_),
    );
    expect(stepped!.length).toBeGreaterThan(5);
    expect(others!.length).toBeGreaterThan(50);
    for (const names of stepped!) expect(names).not.toContain('flush');
    for (const names of stepped!) expect(names).not.toContain('cut');
  });
});
