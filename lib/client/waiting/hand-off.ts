import type { Rivals } from '../../store/queue-messages.js';
import { deadlineOf, now } from '../holding/deadline.js';
import type { Tenure, LeaseTerms } from '../holding/tenure.js';

/**
 * Age, ms, up to which a tenure may be handed off. A hand-off sends no command, so the process admits callers on an
 * answer of the store that is up to this old. If an operator deletes the key, no caller is admitted after this time.
 * The limit also bounds a series of long holds, which a count does not: 16 holds of 1 s exceed the default wait time of
 * callers in other processes. Two commands for each hold of this length are no load.
 */
export const HANDOFF_TIME = 1_000;

/**
 * The same limit while other processes wait in the queue, ms. Several short holds of one process fit into this time.
 * Longer holds alternate between processes after one or two, so that callers wait about as long as in a queue of
 * callers. Two commands per hold are then a small cost beside the hold itself.
 */
const TURN_TIME = 3;

/** Limits on the time for which a process keeps a lock while others wait. `most` is the option `localHandoff`. */
const LIMITS: Readonly<
  Record<Rivals, (most: number) => { readonly handoffs: number; readonly time: number }>
> = {
  none: (most) => ({ handoffs: most, time: HANDOFF_TIME }),
  queued: (most) => ({ handoffs: most, time: TURN_TIME }),
  // Each rival without an entry in the queue gets one turn at a time.
  outside: (most) => ({ handoffs: Math.min(most, 1), time: TURN_TIME }),
};

/**
 * Whether the tenure may go to the next caller of this process without a command. That caller gets the lease of the
 * tenure, so this must equal the lease of a request of its own: renewed, of the same length, with most of it left, and
 * not extended. If the process crashed, an extended lease would keep the lock taken for longer than the caller asked
 * for.
 * @param next the terms of the next caller
 * @param most the option `localHandoff`
 */
export function mayHandOff(tenure: Tenure, next: LeaseTerms | undefined, most: number): boolean {
  const { leaseTime, renewed } = tenure.terms;
  if (!renewed || next?.renewed !== true || next.leaseTime !== leaseTime) return false;
  const limit = LIMITS[tenure.rivals](most);
  const time = now();
  return (
    !tenure.isRunningOut &&
    tenure.handoffs < limit.handoffs &&
    time - tenure.grantedAt < limit.time &&
    tenure.remainingTime >= leaseTime / 2 &&
    tenure.granted <= leaseTime &&
    tenure.keptAtMostUntil <= deadlineOf(time, leaseTime)
  );
}
