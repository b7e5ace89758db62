import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Holding, Holdings } from '../../lib/stores/quorum/holdings.js';

describe('Holding', () => {
  it('is unsure of every member at first, and lasts as long as the lease', () => {
    const asked = performance.now();
    const holding = new Holding(3, 1_000);
    expect([...holding.unsure]).toEqual([0, 1, 2]);
    expect(holding.until).toBeGreaterThanOrEqual(asked + 1_000);
  });

  it('is prolonged, never shortened', () => {
    const holding = new Holding(3, 10_000);
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
    const keeper = new Holding(3, 60_000);
    holdings.set('keeper', keeper);
    for (let n = 0; n < 997; n++) holdings.set(`over-${String(n)}`, new Holding(3, 100));
    jest.advanceTimersByTime(101);
    // Not at every acquisition: each time it looks at them all.
    holdings.set('last but one', new Holding(3, 100));
    expect(holdings.get('over-0')).toBeDefined();
    holdings.set('last', new Holding(3, 100));
    expect(holdings.get('over-0')).toBeUndefined();
    expect(holdings.get('keeper')).toBe(keeper);
    expect(holdings.get('last')).toBeDefined();
  });

  it('looks for them the less often the more go on', () => {
    const holdings = new Holdings();
    for (let n = 0; n < 1_500; n++) holdings.set(`on-${String(n)}`, new Holding(3, 60_000));
    holdings.set('over', new Holding(3, 100));
    jest.advanceTimersByTime(101);
    holdings.set('next', new Holding(3, 100));
    expect(holdings.get('over')).toBeDefined();
  });
});
