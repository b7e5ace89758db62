import { type DynamicModule, Module } from '@nestjs/common';
import { LockModule } from '../lock.module.js';
import type { LockModuleOptions } from '../lock.options.js';
import { MemoryLockStore } from '../stores/memory/memory-lock-store.js';

/** Options of {@link LockTestingModule.forRoot}. Times are milliseconds. */
export interface LockTestingOptions extends Omit<LockModuleOptions, 'connection' | 'nodes' | 'replication'> {
  /** Modules that are given the same one compete as two instances on one Redis would. @default one of its own */
  store?: MemoryLockStore;
}

/**
 * LockModule without Redis, for tests: locks live in memory and behave as they do on Redis, expiry, queues and
 * fencing tokens included. All time is that of timers and of `performance.now()`, so fake timers govern it when they
 * are installed before the module is made; a wait that is over ends one millisecond later there.
 *
 * A lock that is left held, after a failed assertion for example, keeps no process alive, nor does a wait without an end for
 * it; a wait with a `waitTime` does until that is over.
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
