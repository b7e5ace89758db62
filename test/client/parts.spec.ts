import '../../lib/index.js';
import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, expect, it, jest } from '@jest/globals';
import { LastEntries } from '../../lib/client/last-entries.js';
import { pathOf } from '../../lib/client/scope/call-site.js';
import { currentScope, type Scope } from '../../lib/client/scope/scope.js';
import { LockService } from '../../lib/index.js';

it('the last entries are remembered, and no more than twice as many', () => {
  const last = new LastEntries<number, string>(3);
  for (let n = 0; n < 100; n++) last.set(n, String(n));
  expect([97, 98, 99].map((n) => last.get(n))).toEqual(['97', '98', '99']);
  expect(last.has(94)).toBe(false);
  last.set(99, 'again');
  const all = Array.from({ length: 100 }, (_, n) => last.get(n));
  expect(all.filter((value) => value !== undefined)).toEqual(['96', '97', '98', 'again']);
  expect([last.delete(99), last.delete(99), last.has(99)]).toEqual([true, false, false]);
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

afterEach(() => {
  jest.useRealTimers();
});
