import { callersScope, runInScope, Scope } from '../../client/scope/scope.js';
import { LockConfigError } from '../../api/errors.js';

/** Of all copies of this package: a test may import another copy than its services. */
const SWITCHES = Symbol.for('nestjs-distributed-lock.pass-through');
const shared = globalThis as { [SWITCHES]?: Set<symbol> | undefined };
const switches = (shared[SWITCHES] ??= new Set<symbol>());

export const locksPassThrough = (): boolean => switches.size > 0;

/**
 * For unit tests of decorated services: from here on `@DistributedLock` and `LockInterceptor` call the method as if they
 * were absent. No key is made, no lock is taken, and no LockService is needed, so `new Orders()` works; `assertLocked()`
 * passes, and `currentLease()` gives undefined.
 * @returns restores the former state
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

/** Runs a method of a service that takes no locks for decorators. `assertLocked()` passes in it, as in a locked one. */
export const runUnlocked = <T>(run: () => T): T => runInScope(Scope.unlocked(callersScope()), run);
