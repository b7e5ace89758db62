import { runOutsideScopes } from '../core/scope.js';
import { LockConfigError } from '../lock.errors.js';
import type { Lease, Lock } from '../locks/lock.js';

/**
 * Somebody else takes the lock, and keeps it until the lease is released: to see what your code does when it is busy.
 * The caller's scope does not get it, so what runs there finds it busy, too.
 * @throws LockConfigError when it is not free, or when called by whom the lock lets in
 */
export async function makeLockBusy(lock: Lock): Promise<Lease> {
  const lease = lock.isHeld() ? null : await runOutsideScopes(() => lock.tryAcquire());
  if (lease === null) throw new LockConfigError('makeLockBusy', `"${lock.name}" is held already`);
  return lease;
}

/**
 * Whoever holds the lock loses it, as if it had been deleted in Redis: to see what your code does then. Holders of
 * this LockService know at once, others with their next renewal.
 * @throws LockConfigError when nobody holds it
 */
export async function loseLock(lock: Lock): Promise<void> {
  if (!(await lock.forceRelease())) {
    throw new LockConfigError('loseLock', `nobody holds "${lock.name}"`);
  }
}
