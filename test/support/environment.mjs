import { AsyncLocalStorage } from 'node:async_hooks';
import { createRequire } from 'node:module';

// Jest's own, which is CommonJS and not a dependency of this package.
const jest = createRequire(import.meta.url).resolve('jest');
const config = createRequire(createRequire(jest).resolve('@jest/core')).resolve('jest-config');
const { TestEnvironment } = createRequire(config)('jest-environment-node');

/** Those in use by the file that runs. */
const storages = new Set();
const { run, enterWith } = AsyncLocalStorage.prototype;
AsyncLocalStorage.prototype.run = function (...given) {
  storages.add(this);
  return run.apply(this, given);
};
AsyncLocalStorage.prototype.enterWith = function (store) {
  storages.add(this);
  enterWith.call(this, store);
};

/**
 * Node's environment, which ends what a file leaves in its worker. Each promise of Node 20 carries the value of each
 * AsyncLocalStorage that was ever entered, and each file makes some of its own: after a hundred files an `await` would
 * cost fifty times as much.
 */
export default class extends TestEnvironment {
  async teardown() {
    await super.teardown();
    for (const storage of storages) storage.disable();
    storages.clear();
  }
}
