import { LockConfigError } from '../lock.errors.js';

/** Of all copies of this package: the one that a test imports need not be the one that its services import. */
const SWITCHES = Symbol.for('nestjs-distributed-lock.pass-through');
const shared = globalThis as { [SWITCHES]?: Set<symbol> | undefined };
const switches = (shared[SWITCHES] ??= new Set<symbol>());

export const locksPassThrough = (): boolean => switches.size > 0;

/**
 * For unit tests of decorated services: from here on `@DistributedLock` and `LockInterceptor` call the method as if
 * they were not there. No key is made, no lock is taken, and no LockService is needed, so `new Orders()` will do;
 * `assertLocked()` is content, and `currentLease()` has nothing to give.
 * @returns puts everything back as it was
 * @throws LockConfigError when NODE_ENV is `production`
 */
export function passThroughLocks(): () => void {
  if (process.env.NODE_ENV === 'production') {
    throw new LockConfigError('passThroughLocks', 'is for tests, and NODE_ENV is production');
  }
  const mine = Symbol('passThroughLocks');
  switches.add(mine);
  return () => {
    switches.delete(mine);
  };
}
