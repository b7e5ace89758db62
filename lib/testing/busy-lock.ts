import { runOutsideScopes } from '../client/scope/scope.js';
import { LockConfigError } from '../api/errors.js';
import { inQuotes } from '../runtime/text.js';
import { LeaseGroup } from '../locks/multi/lease-group.js';
import type { Lease, Lock } from '../api/lock.js';
import type { OwnLease } from '../locks/own-lease.js';

/**
 * Another owner takes the lock and keeps it until the lease is released: a test sees what the code does when the lock is
 * busy. Of a semaphore it takes all permits, and of a read lock the write side, also in a multi-lock. No scope gets the lock, so the code that calls this finds it busy too, also inside of
 * `runInScope`. With `await using busy = await makeLockBusy(lock)` the lock is free again also after a failed assertion.
 * @throws LockConfigError when the lock is not free, or when the current scope holds it
 */
export async function makeLockBusy(lock: Lock): Promise<Lease> {
  const leases: OwnLease[] = [];
  try {
    for (const next of whatBlocks(lock)) {
      const lease = next.isHeld() ? null : await runOutsideScopes(() => next.tryAcquire());
      if (lease === null)
        throw new LockConfigError('makeLockBusy', `"${inQuotes(lock.name)}" is held already`);
      leases.push(lease as OwnLease);
    }
  } catch (error) {
    await Promise.all(leases.map((taken) => taken.release()));
    throw error;
  }
  const [only] = leases;
  return only !== undefined && leases.length === 1
    ? only
    : new LeaseGroup(lock.name, only?.label ?? '', leases, { together: (run) => run() });
}

/**
 * The locks to hold so that the lock is busy for every other owner: readers share a read lock, and a semaphore has several
 * permits. Found by shape: the lock may be of another copy of this package.
 */
function whatBlocks(lock: Lock): Lock[] {
  const { members = [lock] } = lock as { readonly members?: readonly Lock[] };
  const blocking = members.map((member) => {
    const { kind, otherSide = member } = member as { readonly kind?: string; readonly otherSide?: Lock };
    return kind === 'read' ? otherSide : member;
  });
  return [...new Set(blocking)].flatMap((member) => {
    const { permits = 1 } = member as { readonly permits?: number };
    return Array<Lock>(permits).fill(member);
  });
}

/**
 * Each holder of the lock loses it, as if it had been deleted in Redis: a test sees what the code does then. A holder of
 * this LockService learns of it at once. Another holder learns of it when it has held the lock for a second, else with its
 * next renewal or check.
 * @throws LockConfigError when no owner holds the lock
 */
export async function loseLock(lock: Lock): Promise<void> {
  if (!(await lock.forceRelease())) {
    throw new LockConfigError('loseLock', `"${inQuotes(lock.name)}" is not held`);
  }
}
