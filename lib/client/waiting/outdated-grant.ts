import type { ReleaseRequest } from '../../store/lock-store.js';
import { now } from '../holding/deadline.js';
import type { Tenure } from '../holding/tenure.js';

// Two holds of this process exclude each other, and the store has granted both: one of them is gone. Answers may come in
// another order than the grants, so the greater token is the later grant. Tokens can also go back, if the store has lost them
// and its clock has been set back. Then the store has the grant that is turned down, and the former hold is gone: the caller
// of these functions asks the store about it.

/** Whether a grant whose answer has come now is earlier than that of a hold from before. */
export const isOutdated = (tenure: Tenure, former: Tenure): boolean =>
  former.fencingToken > tenure.fencingToken;

/** Ends a tenure that no caller is going to use, and gives up its hold. */
export function turnDown(
  tenure: Tenure,
  releaser: { release(request: ReleaseRequest, until: number): unknown },
): void {
  const { name, owner, terms, fencingToken, queue } = tenure;
  const { leaseTime } = terms;
  tenure.lose('taken');
  releaser.release({ name, owner, leaseTime, fencingToken, queue }, now() + leaseTime);
}
