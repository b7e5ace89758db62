import type { Duration } from '../api/duration.js';
import type { Lease } from '../api/lock.js';

/** The package's view of a lease. Its release may leave the lock taken for a while. */
export interface OwnLease extends Lease {
  /** ms from the acquisition during which no other owner gets the lock, even after a release. */
  minHoldTime: number;
  /** Whether other owners may hold the lock at the same time: readers, or owners of permits. */
  readonly isShared: boolean;
  /**
   * @param given the object that the caller of `acquire` gets and must release: this lease, or the lease of a
   *   multi-lock
   */
  giveOut(given: Lease): void;
  toJSON(): object;
  /**
   * Checks an extension before any command.
   * @returns the lease time in ms
   * @throws LockLostError, LockConfigError
   */
  extensionOf(leaseTime: Duration): number;
}

/** The form of a lease in a log line or an answer. The lease itself has circular references. */
export const leaseJson = (lease: Lease): object => {
  const { name, label, owner, fencingToken, held, acquiredAt } = lease;
  const times = { acquiredAt, heldFor: Math.round(lease.heldFor()), remainingTime: lease.remainingTime() };
  return { name, label, owner, fencingToken, held, ...times };
};
