import type { Captured } from '../client/scope/call-site.js';
import type { Scope } from '../client/scope/scope.js';
import type { Duration } from '../api/duration.js';
import type { Lease } from '../api/lock.js';

/** A lease as this package sees it: its release can leave the lock taken for a while. */
export interface OwnLease extends Lease {
  /** ms since the acquisition for which no other owner gets the lock, even though it is released. */
  minHoldTime: number;
  /** Others may hold the lock at the same time: readers, or owners of a semaphore's permits. */
  readonly isShared: boolean;
  /** @param given the object that the caller of `acquire` gets, which has to release it: this lease, or that of a multi-lock */
  giveOut(given: Lease): void;
  toJSON(): object;
  /**
   * @returns the lease time in ms
   * @throws what `extend` refuses before anything is sent
   */
  extensionOf(leaseTime: Duration): number;
}

/** The part of one lease in its hold. */
export interface Share {
  readonly label: string;
  /** The scope of the call. */
  readonly inside: Scope | undefined;
  /** The place of the call, if that was captured. */
  readonly site: Captured | undefined;
  readonly held: boolean;
  heldFor(): number;
  /** Until when no other owner is to get the lock, on the monotonic clock; -Infinity without a `minHoldTime`. */
  readonly keepUntil: number;
  /** The end of a fixed lease as this one has asked for it, on the monotonic clock; undefined if it is renewed. */
  needsUntil: number | undefined;
  /** The lease, for other code than that of its caller. */
  readonly shown: Lease;
  /** Called once a second while the lock is held for longer than that. */
  onLongHold(): void;
}

/** The form of a lease in a log line or in an answer. The lease itself contains circular references. */
export const leaseJson = (lease: Lease): object => {
  const { name, label, owner, fencingToken, held, acquiredAt } = lease;
  const times = { acquiredAt, heldFor: Math.round(lease.heldFor()), remainingTime: lease.remainingTime() };
  return { name, label, owner, fencingToken, held, ...times };
};
