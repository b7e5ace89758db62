import type { Rivals } from '../../store/queue-messages.js';
import { deadlineOf, now } from '../holding/deadline.js';
import type { Tenure, LeaseTerms } from '../holding/tenure.js';

/**
 * How long after the grant a tenure may still be handed off, ms. A hand-off sends nothing to the store. So the process
 * admits callers on an answer of the store that is up to this old: after this time, a key that was deleted since admits no
 * further caller. The limit also bounds a row of long holds, which a count does not: 16 holds of 1 s are longer than the
 * default wait time of the callers in other processes. Holds of this length are so rare that two commands for each are no
 * load.
 */
export const HANDOFF_TIME = 1_000;

/**
 * The same limit where other processes wait in the queue, ms. Short holds pass through a whole row of callers in this time.
 * Longer holds go to the next process after one or two, so that callers wait about as long as in a queue of callers. Two
 * commands for each hold that is longer than this are a small cost beside the hold.
 */
const TURN_TIME = 3;

/** The limits on how long a process may keep a lock while others wait. `most` is the option `localHandoff`. */
const LIMITS: Readonly<
  Record<Rivals, (most: number) => { readonly handoffs: number; readonly time: number }>
> = {
  none: (most) => ({ handoffs: most, time: HANDOFF_TIME }),
  queued: (most) => ({ handoffs: most, time: TURN_TIME }),
  // Each rival outside of the queue gets one turn at a time.
  outside: (most) => ({ handoffs: Math.min(most, 1), time: TURN_TIME }),
};

/**
 * Whether the tenure may go to the next caller of this process without a command. That caller gets what the store has
 * already granted, so this has to be what its own request would have got: a lease that the watchdog renews, of the same
 * length, with most of it left, and not prolonged by `extend`. A prolonged lease would keep the lock taken for that long if
 * the process died.
 * @param next what the next caller asks for
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
