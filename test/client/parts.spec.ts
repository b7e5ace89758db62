import '../../lib/index.js';
import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, expect, it, jest } from '@jest/globals';
import { LastEntries } from '../../lib/client/last-entries.js';
import { pathOf } from '../../lib/client/scope/call-site.js';
import { currentScope, type Scope } from '../../lib/client/scope/scope.js';
import { onAbort } from '../../lib/client/waiting/on-abort.js';
import { LockService, MemoryLockStore } from '../../lib/index.js';

it('the oldest entry is forgotten beyond the bound, and not at it', () => {
  const last = new LastEntries<string, number>(2).set('a', 1).set('b', 2).set('a', 3);
  expect([...last]).toEqual([
    ['a', 3],
    ['b', 2],
  ]);
  expect([...last.set('c', 4).keys()]).toEqual(['b', 'c']);
});

it('the callbacks of a signal run in order, and one of them may end another while they run', () => {
  const controller = new AbortController();
  const called: string[] = [];
  const ends = ['a', 'b', 'c', 'd'].map((name) =>
    onAbort(controller.signal, () => {
      called.push(name);
      if (name === 'b') ends[2]?.();
    }),
  );
  controller.abort();
  expect(called).toEqual(['a', 'b', 'd']);
});

it.each([
  ['file:///srv/an%20app/main.js', '/srv/an app/main.js'],
  ['file:///C:/app/main.js', 'C:/app/main.js'],
  ['C:\\app\\main.js', 'C:\\app\\main.js'],
  ['file:///srv/100%/main.js', '/srv/100%/main.js'],
])('the place of a call in %s is %s', (file, path) => {
  expect(pathOf(file)).toBe(path);
});

const locks = new LockService({ store: 'memory' });

const STEPS = 300;
const ways: [string, <T>(step: () => T) => T][] = [
  ['in the scope of the step before', (step) => step()],
  ['in a scope of its own', (step) => locks.runInScope(step)],
];

it.each(ways)(
  'work that starts its successor and does not wait for it keeps nothing of the steps that are over, each %s',
  async (_, start) => {
    setFlagsFromString('--expose-gc');
    const collectGarbage = runInNewContext('gc') as () => void;
    const scopes: WeakRef<Scope>[] = [];
    await new Promise<void>((resolve) => {
      const step = (n: number): void => {
        const work = async () => {
          const scope = currentScope();
          if (scope !== undefined) scopes.push(new WeakRef(scope));
          await turn();
          if (n < STEPS) {
            step(n + 1);
            return;
          }
          for (let i = 0; i < 3; i++) {
            await turn();
            collectGarbage();
          }
          resolve();
        };
        void start(() => locks.using(`step ${String(n)}`, work));
      };
      step(1);
    });
    expect(scopes).toHaveLength(STEPS);
    expect(scopes.filter((scope) => scope.deref() !== undefined).length).toBeLessThan(100);
  },
);

/** What the copies of the package share under this name. */
const sharedState = (name: string): unknown =>
  Reflect.get(globalThis, Symbol.for(`nestjs-distributed-lock.${name}`));

// Jest replaces what can be configured by setters that call themselves, and late work of a test file would end the worker.
it.each(['clock', 'lock-order'])('the %s on globalThis has no field that Jest can replace', (name) => {
  const state = sharedState(name) as object;
  const descriptors = Object.values(Object.getOwnPropertyDescriptors(state));
  expect(descriptors.filter(({ configurable }) => configurable)).toEqual([]);
});

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
