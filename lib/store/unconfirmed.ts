import type { LockUnavailableError } from '../api/errors.js';

const unconfirmed = new WeakSet<object>();

/** For the error of a store that has granted a lock which does not count, such as one that too few replicas have. */
export function grantedInVain<E extends object>(error: E): E {
  unconfirmed.add(error);
  return error;
}

/** Whether the owner that asked is the holder in the store now, until it gives that up. */
export const isGrantedInVain = (error: object): boolean => unconfirmed.has(error);

const doubts = new WeakMap<object, LockUnavailableError>();

/**
 * For the answer that another owner has the lock, while a grant would not count either: the grant of that owner may be
 * about to be undone.
 */
export function doubted(answer: object, error: LockUnavailableError): void {
  doubts.set(answer, error);
}

/** Why the lock could not be given out now, even if it were free. */
export const doubtOf = (answer: object): LockUnavailableError | undefined => doubts.get(answer);
