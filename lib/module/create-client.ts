import type { LockModuleOptions } from '../api/options.js';
import { idleTimerAt } from '../client/holding/deadline.js';
import { LockClient } from '../client/lock-client.js';
import { createStore, isInProcess } from '../stores/create-store.js';
import { assertGiven, resolveOptions } from './options-validation.js';

/** @throws LockConfigError when an option is wrong */
export function createClient(options: LockModuleOptions): LockClient {
  assertGiven(options);
  const settings = resolveOptions(options);
  const store = createStore(options, settings);
  // In memory a lock that is still held must not keep the process alive: a failed test leaves some. A wait with an end
  // does keep it alive.
  return new LockClient(store, settings, isInProcess(store) ? idleTimerAt : undefined);
}
