import { describe, expect, it } from '@jest/globals';
import type { Fault } from './faults/fault.js';
import { endOf, readJournal } from './history.js';
import { Random } from './random.js';
import type { RoundResult } from './round.js';
import { mixOf, type Planned } from './schedule.js';
import { count, GROUPS, type Strikes } from './strikes.js';
import { jestReport, Summary } from './summary.js';

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

  it('gives most strikes to what only some deployments have, however many faults the rest is made of', () => {
    const many = Array.from({ length: 19 }, (_, index) =>
      fault(`cut ${String(index)}`, { group: 'network' }),
    );
    const names = told(
      mixOf([...many, fault('failover', { group: 'cluster' })], new Random(3), 1_000, 400),
    ).map(({ name }) => name);
    expect(names.filter((name) => name === 'failover').length).toBeGreaterThan(200);
  });
});

describe('Summary', () => {
  const result = (acquisitions: number, times: number): RoundResult => {
    const strikes: Strikes = {};
    for (const group of GROUPS) count(strikes, group, `something of ${group}`, times);
    return {
      violations: [],
      acquisitions,
      ofSeveral: 0,
      notes: 0,
      handedOver: 0,
      losses: 0,
      deadlocks: 0,
      expected: { overlaps: 0, refused: 0 },
      strikes,
      journals: undefined,
    };
  };

  it('is content with a long run that struck with everything', () => {
    const summary = new Summary(1);
    summary.add('single', 0, result(60_000, 20));
    summary.add('cluster', 1, result(60_000, 30));
    summary.findShortfalls();
    expect(summary.shortfalls).toEqual([]);
    expect(jestReport(summary).success).toBe(true);
  });

  it('says of a long run what it did too little of, and fails', () => {
    const summary = new Summary(1);
    summary.add('single', 0, result(99_999, 49));
    count(summary.strikes, 'quorum', 'something of quorum');
    summary.findShortfalls();
    expect(summary.shortfalls).toContain('network struck 49 times instead of 50');
    expect(summary.shortfalls).toContain('99999 acquisitions instead of 100000');
    expect(summary.shortfalls.join()).not.toContain('quorum');
    expect(jestReport(summary).success).toBe(false);
  });
});
