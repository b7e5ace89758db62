import { type DynamicModule, Module } from '@nestjs/common';
import type { Duration } from '../api/duration.js';
import { LockModule } from '../module/lock-module.js';
import type { LockModuleOptions } from '../api/options.js';
import { MemoryLockStore } from '../stores/memory/memory-lock-store.js';

/** Options of {@link LockTestingModule.forRoot}. Times are milliseconds. */
export interface LockTestingOptions extends Omit<LockModuleOptions, 'connection' | 'nodes' | 'replication'> {
  /** Modules with the same store compete as two instances on one Redis would. @default a store of its own */
  store?: MemoryLockStore;
  /**
   * No call waits longer than this for its lock, or for its key, whatever its own `waitTime` or that of its decorator is: a test of
   * a busy lock does not wait for the `'2s'` of a decorator. Elections campaign without this limit. @default Infinity
   */
  maxWaitTime?: Duration;
}

/**
 * LockModule without Redis, for tests: locks live in memory and behave as they do on Redis, expiry, queues and fencing
 * tokens included. All time is that of timers and of `performance.now()`, so fake timers control it if they are installed
 * before the module is made. Under fake timers a wait ends one millisecond after its time.
 *
 * A lock that stays held, after a failed assertion for example, keeps no process alive. Nor does a wait for that lock
 * without an end. A wait with a `waitTime` keeps the process alive until its end.
 */
@Module({})
export class LockTestingModule {
  /** @throws LockConfigError when an option is wrong */
  static forRoot(options: LockTestingOptions = {}): DynamicModule {
    const store = options.store ?? new MemoryLockStore();
    return {
      module: LockTestingModule,
      imports: [LockModule.forRoot({ ...options, store })],
      exports: [LockModule],
    };
  }
}
