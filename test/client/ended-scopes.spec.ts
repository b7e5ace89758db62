import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { currentScope, type Scope } from '../../lib/client/scope/scope.js';
import { LockService } from '../../lib/index.js';

let locks: LockService;

beforeEach(() => {
  locks = new LockService({ store: 'memory' });
});

afterEach(async () => {
  await locks.close();
});

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
