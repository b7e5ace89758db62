import type { Duration } from '../lock.duration.js';
import type { Lease } from './lock.js';

/** A lease as this package sees it: its release can leave the lock taken for a while. */
export interface OwnLease extends Lease {
  /** ms since the acquisition for which no other owner gets the lock, even though it is released. */
  minHoldTime: number;
  /** Others may hold the lock at the same time: readers, or owners of a semaphore's permits. */
  readonly isShared: boolean;
  /** Called when the lease has been released or handed over. Of its loss its signal tells. */
  onReleased?: ((releasing: Promise<void>) => void) | undefined;
  /** @returns what the caller of `acquire` gets, which has to release it */
  giveOut(): Lease;
  /** It is a member of a multi-lock, whose lease the caller of `acquire` gets. */
  giveOutIn(given: Lease): void;
  toJSON(): object;
  /**
   * @returns the lease time in ms
   * @throws what `extend` refuses before anything is sent
   */
  extensionOf(leaseTime: Duration): number;
}
