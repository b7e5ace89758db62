import type { ExecutionContext } from '@nestjs/common';
import { assertOwnOptions } from '../../client/validation.js';
import { LockConfigError, type LockKeyError } from '../../api/errors.js';
import { CALL_OPTIONS } from '../../module/method-validation.js';
import type { DistributedLockOptions } from '../../api/options.js';
import { compileOptions, type DeclaredOptions, type MethodOptions } from '../decorator/method-options.js';

/** How {@link LockInterceptor} locks handlers. Times are milliseconds, or texts such as `'30s'`. */
export interface LockInterceptorOptions extends Omit<DistributedLockOptions, 'returns'> {
  /**
   * Gives the error of a request that gives no usable key, because it lacks a header or a parameter for example.
   * @default over HTTP a BadRequestException with `code: 'LOCK_KEY'`, elsewhere a LockKeyError with the status 400; its cause
   *   is the LockKeyError, and there is one log line for each handler
   */
  onKeyError?: ((failure: { error: LockKeyError; context: ExecutionContext }) => Error) | undefined;
}

const OWNER = 'LockInterceptor';

/**
 * Compiles the options of an interceptor, which does not need `returns`.
 * @throws LockConfigError with the option, the rule and the value
 */
export function compileInterceptorOptions(
  given: LockInterceptorOptions | MethodOptions<[context: ExecutionContext]>,
  label: string | undefined,
): { options: DeclaredOptions; onKeyError: LockInterceptorOptions['onKeyError'] } {
  if (typeof given !== 'object' || (given as unknown) === null || Array.isArray(given)) {
    return { options: compileOptions(given, OWNER, { label }), onKeyError: undefined };
  }
  const known = [...CALL_OPTIONS, 'instance'];
  assertOwnOptions(given, [...known, 'onKeyError']);
  const { onKeyError, ...others }: LockInterceptorOptions = given;
  if (onKeyError !== undefined && typeof onKeyError !== 'function') {
    throw new LockConfigError('onKeyError', 'must be a function', { value: onKeyError });
  }
  const options = compileOptions(others, OWNER, { known, label });
  return { options, onKeyError };
}
