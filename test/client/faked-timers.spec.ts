import { afterEach, expect, it, jest } from '@jest/globals';
import { LockService, MemoryLockStore } from '../../lib/index.js';

afterEach(() => {
  jest.useRealTimers();
});

it.each([
  ['without the clock', { doNotFake: ['performance' as const] }],
  ['the old way', { legacyFakeTimers: true as const }],
])('a wait fails where timers are faked %s: it would never come to its end', async (_, config) => {
  const store = new MemoryLockStore();
  const [holder, locks] = [new LockService({ store }), new LockService({ store })];
  await holder.acquire('a', { leaseTime: 3_600_000 });
  jest.useFakeTimers(config);
  const waiting = locks.acquire('a', { waitTime: 60_000 });
  const failing = expect(waiting).rejects.toThrow('must replace performance.now() too');
  // With the old way nothing else lets promises go on.
  for (let n = 0; n < 200; n++) await Promise.resolve();
  jest.advanceTimersByTime(60_001);
  await failing;
});
