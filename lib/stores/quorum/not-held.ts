import { type LockKindMismatchError } from '../../api/errors.js';
import { isLockKindMismatchError, type Found } from '../../api/error-guards.js';
import type { NodeAnswer } from './ballot.js';

/**
 * The most specific reason why a majority does not hold a lock: another kind of value, then another owner, then no
 * owner.
 */
export function whyNotHeld(
  cast: readonly (NodeAnswer<Found<string>> | undefined)[],
): Found<'taken' | 'deleted'> {
  const values = cast.flatMap((answer) => (answer !== undefined && 'value' in answer ? [answer.value] : []));
  const mismatch = values.find((value) => typeof value !== 'string');
  return mismatch ?? (values.includes('taken') ? 'taken' : 'deleted');
}

/** The error of a member that has another kind of value under the name of the lock. */
export function mismatchAmong(
  cast: readonly (NodeAnswer<unknown> | undefined)[],
): LockKindMismatchError | undefined {
  return cast
    .map((answer) => (answer !== undefined && 'error' in answer ? answer.error : undefined))
    .find(isLockKindMismatchError);
}
