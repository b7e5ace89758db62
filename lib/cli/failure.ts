import { types } from 'node:util';
import { type LockUnavailableError } from '../api/errors.js';
import {
  isLockConfigError,
  isLockKeyError,
  isLockKindMismatchError,
  isLockTimeoutError,
  isLockUnavailableError,
} from '../api/error-guards.js';
import { onOneLine } from '../runtime/text.js';
import { Failure } from './command-failure.js';
import { EXIT } from './exit-code.js';

/** The line and the exit code of an error. Nothing but messages is shown: other parts of an error may hold a password. */
export function failureOf(error: unknown): Failure {
  if (error instanceof Failure) return error;
  if (isLockConfigError(error) || isLockKeyError(error)) return new Failure(error.message, EXIT.usage);
  if (isLockKindMismatchError(error)) return new Failure(error.message, EXIT.mismatch);
  if (isLockTimeoutError(error)) return new Failure(error.message, EXIT.busy);
  if (isLockUnavailableError(error)) return new Failure(outageOf(error), EXIT.unavailable);
  return new Failure(error instanceof Error ? error.message : String(error), EXIT.fault);
}

function outageOf({ cause, outcomes }: LockUnavailableError): string {
  const each = outcomes.map(({ node, outcome, error }) => `${node} ${messageOf(error) ?? outcome}`);
  const why = each.length > 0 ? each.join('; ') : (messageOf(cause) ?? 'the reason is not known');
  return `Redis cannot be used: ${onOneLine(why)}`;
}

/** Why a command was not done, in a line. */
export const reasonOf = (error: unknown): string => onOneLine(messageOf(error) ?? String(error));

/** With the reason of a connection that could not be made, which is an error of its own. */
function messageOf(error: unknown): string | undefined {
  if (!isError(error)) return undefined;
  if (isLockUnavailableError(error) && error.cause !== undefined) return messageOf(error.cause);
  const reason = error.name === 'NotConnected' ? messageOf(error.cause) : undefined;
  const { code = error.name } = error as NodeJS.ErrnoException;
  const message = error.message === '' ? code : error.message;
  return reason === undefined ? message : `${message}: ${reason}`;
}

/** Errors of the system come from another realm if the code runs in its own one. */
const isError = (error: unknown): error is Error => error instanceof Error || types.isNativeError(error);
