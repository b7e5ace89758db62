import { describe, expect, it } from '@jest/globals';
import type { Fault } from './faults/fault.js';
import { Random } from './random.js';
import { mixOf, type Planned } from './schedule.js';

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

describe('mixOf', () => {
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
