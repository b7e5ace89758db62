import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from '@jest/globals';
import { LastEntries } from '../../lib/client/last-entries.js';
import { pathOf } from '../../lib/client/scope/call-site.js';
import { currentScope, type Scope } from '../../lib/client/scope/scope.js';
import { onAbort } from '../../lib/client/waiting/on-abort.js';
import { LockService } from '../../lib/index.js';

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
          if (n < 1_000) {
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
    expect(scopes).toHaveLength(1_000);
    expect(scopes.filter((scope) => scope.deref() !== undefined).length).toBeLessThan(100);
  },
);
