import * as hooks from 'node:async_hooks';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { AbstractConnector, Redis } from 'ioredis';
import type * as errors from '../../lib/api/errors.js';
import type { LockService, MemoryLockStore } from '../../lib/index.js';
import type { Actor } from '../programs/simulation/world/actor.js';
import { type Instance, NAMES, namesOf } from '../programs/simulation/world/names.js';
import { scopes } from '../programs/simulation/world/scopes.js';

const require = createRequire(import.meta.url);

/** What the code of a process imports. */
export type Package = typeof errors & {
  readonly LockService: typeof LockService;
  readonly MemoryLockStore: typeof MemoryLockStore;
  readonly Redis: typeof Redis;
  readonly AbstractConnector: typeof AbstractConnector;
};

/** Receives the lines that the package logs. */
export type Log = (level: string, text: unknown) => void;

type Stores = ReadonlyMap<ProcessStorage, unknown>;

/**
 * An AsyncLocalStorage of one process. All of them are one of Node's: in Node 20 each promise carries the values of all
 * storages there are.
 */
class ProcessStorage {
  getStore(): unknown {
    return (scopes.getStore() as Stores | undefined)?.get(this);
  }

  run<T>(value: unknown, callback: (...given: unknown[]) => T, ...given: unknown[]): T {
    const stores = new Map(scopes.getStore() as Stores | undefined).set(this, value);
    return scopes.run<T, unknown[]>(stores, callback, ...given);
  }
}

const requireInProcess = (name: string): unknown =>
  name === 'node:async_hooks' ? { ...hooks, AsyncLocalStorage: ProcessStorage } : require(name);

/** Tables that are the same in each process. */
const shared = {};
let instantiate: ((...given: unknown[]) => void) | undefined;

/** The package in a process of its own: nothing that its modules keep is shared with another process. */
export function loadPackage(actor: Actor, log: Log): Package {
  instantiate ??= compile();
  const instance: Instance & { log: Log; shared: object } = { actor, kept: [], log, shared };
  const names = namesOf(instance, new ProcessStorage());
  const module = { exports: {} };
  instantiate(requireInProcess, module, module.exports, ...NAMES.map((name) => names[name]));
  return module.exports as Package;
}

function compile(): (...given: unknown[]) => void {
  const file = process.env.LOCK_TEST_WORLD;
  if (file === undefined) throw new Error('test/support/before-all.mjs has not made the package for worlds');
  const code = readFileSync(file, 'utf8');
  // In the realm of the test, so that errors and arrays are those that `expect` knows.
  return (0, eval)(
    `(function (require, module, exports, ${NAMES.join(', ')}) {${code}\n})\n//# sourceURL=${file}`,
  ) as (...given: unknown[]) => void;
}
