import { isLockKindMismatchError, type LockKindMismatchError, type Found } from '../../lock.errors.js';
import type { NodeAnswer } from './ballot.js';

/** Why a majority does not hold a lock, by the answer that says most: something else, another owner, nobody. */
export function whyNotHeld(
  cast: readonly (NodeAnswer<Found<string>> | undefined)[],
): Found<'taken' | 'deleted'> {
  const values = cast.flatMap((answer) => (answer !== undefined && 'value' in answer ? [answer.value] : []));
  const mismatch = values.find((value) => typeof value !== 'string');
  return mismatch ?? (values.includes('taken') ? 'taken' : 'deleted');
}

/** What a member has found in the place of the lock, where one has. */
export function mismatchAmong(
  cast: readonly (NodeAnswer<unknown> | undefined)[],
): LockKindMismatchError | undefined {
  return cast
    .map((answer) => (answer !== undefined && 'error' in answer ? answer.error : undefined))
    .find(isLockKindMismatchError);
}
