import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Holding, Holdings } from '../../../lib/stores/quorum/holdings.js';

describe('Holding', () => {
  it('may be held by the members that have been asked, as far as they have not refused, and lasts as long as the lease', () => {
    const asked = performance.now();
    const holding = new Holding(1_000);
    const members = [0, 1, 2, 3];
    const may = () => members.filter((index) => holding.mayBeHeldBy(index));
    const unsure = () => members.filter((index) => holding.isUnsureOf(index));
    expect([may(), unsure()]).toEqual([[], []]);
    for (const index of [0, 1, 2]) holding.ask(index);
    expect([may(), unsure()]).toEqual([
      [0, 1, 2],
      [0, 1, 2],
    ]);
    holding.answered(0);
    holding.refused(1);
    expect([may(), unsure()]).toEqual([[0, 2], [2]]);
    expect(holding.until).toBeGreaterThanOrEqual(asked + 1_000);
  });

  it('is unsure of a member until each request has an answer', () => {
    const holding = new Holding(1_000);
    holding.ask(0);
    holding.ask(0);
    holding.answered(0);
    expect([holding.mayBeHeldBy(0), holding.isUnsureOf(0)]).toEqual([true, true]);
    holding.answered(0);
    expect([holding.mayBeHeldBy(0), holding.isUnsureOf(0)]).toEqual([true, false]);
    holding.ask(1);
    holding.ask(1);
    holding.refused(1);
    expect([holding.mayBeHeldBy(1), holding.isUnsureOf(1)]).toEqual([true, true]);
  });

  it('is prolonged, never shortened', () => {
    const holding = new Holding(10_000);
    const { until } = holding;
    holding.prolong(10);
    expect(holding.until).toBe(until);
    holding.prolong(20_000);
    expect(holding.until).toBeGreaterThan(until + 9_000);
  });
});

describe('Holdings', () => {
  beforeEach(() => {
    jest.useFakeTimers();
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  it('forgets leases that have just ended when there are many, and none that go on', () => {
    const holdings = new Holdings();
    const keeper = new Holding(60_000);
    holdings.set('keeper', keeper);
    for (let n = 0; n < 997; n++) holdings.set(`over-${String(n)}`, new Holding(100));
    jest.advanceTimersByTime(101);
    // Not at every acquisition: each time it looks at them all.
    holdings.set('last but one', new Holding(100));
    expect(holdings.get('over-0')).toBeDefined();
    holdings.set('last', new Holding(100));
    expect(holdings.get('over-0')).toBeUndefined();
    expect(holdings.get('keeper')).toBe(keeper);
    expect(holdings.get('last')).toBeDefined();
  });

  it('has what was set last for an owner, until it is deleted', () => {
    const holdings = new Holdings();
    const [first, second] = [new Holding(100), new Holding(100)];
    holdings.set('me', first);
    holdings.set('me', second);
    expect(holdings.get('me')).toBe(second);
    holdings.delete('me');
    expect(holdings.get('me')).toBeUndefined();
  });

  it('looks for them the less often the more go on', () => {
    const holdings = new Holdings();
    for (let n = 0; n < 1_500; n++) holdings.set(`on-${String(n)}`, new Holding(60_000));
    holdings.set('over', new Holding(100));
    jest.advanceTimersByTime(101);
    holdings.set('next', new Holding(100));
    expect(holdings.get('over')).toBeDefined();
  });
});
