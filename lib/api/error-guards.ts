import {
  isLockError,
  type LockAbortedError,
  type LockClosedError,
  type LockConfigError,
  type LockErrorCode,
  type LockKeyError,
  type LockKindMismatchError,
  type LockLostError,
  type LockTimeoutError,
  type LockUnavailableError,
} from './errors.js';

type AnyLockError =
  | LockTimeoutError
  | LockUnavailableError
  | LockLostError
  | LockAbortedError
  | LockKeyError
  | LockKindMismatchError
  | LockConfigError
  | LockClosedError;

const guard =
  <C extends LockErrorCode>(code: C) =>
  (error: unknown): error is Extract<AnyLockError, { code: C }> =>
    isLockError(error) && error.code === code;

/** True for a {@link LockTimeoutError}, thrown by any copy of this package. */
export const isLockTimeoutError = guard('LOCK_TIMEOUT');
/** True for a {@link LockUnavailableError}, thrown by any copy of this package. */
export const isLockUnavailableError = guard('LOCK_UNAVAILABLE');
/** True for a {@link LockLostError}, thrown by any copy of this package. */
export const isLockLostError = guard('LOCK_LOST');
/** True for a {@link LockAbortedError}, thrown by any copy of this package. */
export const isLockAbortedError = guard('LOCK_ABORTED');
/** True for a {@link LockKeyError}, thrown by any copy of this package. */
export const isLockKeyError = guard('LOCK_KEY');
/** True for a {@link LockKindMismatchError}, thrown by any copy of this package. */
export const isLockKindMismatchError = guard('LOCK_KIND_MISMATCH');
/** True for a {@link LockConfigError}, thrown by any copy of this package. */
export const isLockConfigError = guard('LOCK_CONFIG');
/** True for a {@link LockClosedError}, thrown by any copy of this package. */
export const isLockClosedError = guard('LOCK_CLOSED');

/** The value that a store has under a name, which may be something else than a lock. */
export type Found<A> = A | LockKindMismatchError;

/**
 * For a `catch`. Another value under the name is an answer: the owner does not hold the lock. A second try would not find
 * the lock again, and the other value may be removed at any time.
 */
export function asAnswer(error: unknown): LockKindMismatchError {
  if (isLockKindMismatchError(error)) return error;
  throw error;
}
