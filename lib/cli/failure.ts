import {
  isLockConfigError,
  isLockKeyError,
  isLockKindMismatchError,
  isLockTimeoutError,
  isLockUnavailableError,
} from '../api/error-guards.js';
import { outageOf } from '../api/outage.js';
import { onOneLine } from '../runtime/text.js';
import { Failure } from './command-failure.js';
import { EXIT } from './exit-code.js';

/** The line and the exit code of an error. Nothing but messages is shown: other parts of an error may hold a password. */
export function failureOf(error: unknown): Failure {
  if (error instanceof Failure) return error;
  if (isLockConfigError(error) || isLockKeyError(error)) return new Failure(error.message, EXIT.usage);
  if (isLockKindMismatchError(error)) return new Failure(error.message, EXIT.mismatch);
  if (isLockTimeoutError(error)) return new Failure(error.message, EXIT.busy);
  if (isLockUnavailableError(error))
    return new Failure(`Redis cannot be used: ${reasonOf(error)}`, EXIT.unavailable);
  return new Failure(error instanceof Error ? error.message : String(error), EXIT.fault);
}

/** Why a command was not done, in a line. */
export const reasonOf = (error: unknown): string => onOneLine(outageOf(error));
