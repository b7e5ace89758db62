import type { ReleaseRequest } from '../../store/lock-store.js';
import { now } from '../holding/deadline.js';
import type { Tenure } from '../holding/tenure.js';

// If two holds of this process exclude each other and the store granted both, one of them is gone. Answers may arrive
// in another order than the grants, so the hold with the greater token is the later grant. Tokens may also go back, if
// the store has lost them and its clock was set back. Then the outdated grant is the valid one, and the former hold is
// gone: so the caller of these functions asks the store about the former hold.

/** Whether a new grant is earlier than the grant of an existing hold. */
export const isOutdated = (tenure: Tenure, former: Tenure): boolean =>
  former.fencingToken > tenure.fencingToken;

/** Ends a tenure that no caller uses, and releases its hold. */
export function turnDown(
  tenure: Tenure,
  releaser: { release(request: ReleaseRequest, until: number): unknown },
): void {
  const { name, owner, terms, fencingToken, queue } = tenure;
  const { leaseTime } = terms;
  tenure.lose('taken');
  releaser.release({ name, owner, leaseTime, fencingToken, queue }, now() + leaseTime);
}
