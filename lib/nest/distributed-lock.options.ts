import { ACQUIRE_OPTIONS, KINDS, assertKnownOptions, resolveAcquireOptions } from '../core/validation.js';
import type { ExecutionContext } from '@nestjs/common';
import { LockConfigError, type LockKeyError, type LockTimeoutError } from '../lock.errors.js';
import { assertInstanceName } from '../lock.options.validation.js';
import type { AcquireOptions } from '../lock.options.js';

/** How a method is locked. Times are milliseconds, or texts such as `'30s'`. */
export interface DistributedLockOptions extends AcquireOptions {
  /**
   * What happens when the lock is still busy after `waitTime`: LockTimeoutError, nothing (the call gives `undefined`, or an
   * Observable that completes), or the result of your function. Nest answers 500 to an Observable without a value. So a
   * handler that returns one needs the function, or {@link LockInterceptor}, which answers without content. While the
   * application shuts down, `'skip'` skips as well: a consumer that has taken a message and may not lose it needs
   * `'throw'`. {@link LockInterceptor} throws LockClosedError then. A handler that injects the response or `next` without
   * `passthrough` has nothing sent in its place, so it always fails: with the error of your function, or that of the lock.
   * @default 'throw'
   */
  onBusy?: 'throw' | 'skip' | ((busy: { keys: string[]; error: LockTimeoutError }) => unknown) | undefined;
  /**
   * What happens when the lease ended before a method that succeeded. Either its result stands, and the loss is an event
   * and a log line. Or the call throws LockLostError with the result attached.
   * @default 'log'
   */
  onLost?: 'log' | 'throw' | undefined;
  /** The name of the LockService to use. @default the unnamed one */
  instance?: string | undefined;
  /**
   * Whether the method returns a Promise or an Observable, which has to be known before it runs. A Promise of an Observable
   * needs `'observable'`: the method runs, under the lock, when its Observable is subscribed to.
   * @default the method's emitted return type, else 'promise'
   */
  returns?: 'promise' | 'observable' | undefined;
}

/** How {@link LockInterceptor} locks handlers. Times are milliseconds, or texts such as `'30s'`. */
export interface LockInterceptorOptions extends Omit<DistributedLockOptions, 'returns'> {
  /**
   * Gives the error of a request that gives no usable key, because it lacks a header or a parameter for example.
   * @default over HTTP a BadRequestException with `code: 'LOCK_KEY'` and the LockKeyError as its cause, with one log line for
   *   each handler; elsewhere the LockKeyError
   */
  onKeyError?: ((failure: { error: LockKeyError; context: ExecutionContext }) => Error) | undefined;
}

const CHOICES = {
  kind: KINDS,
  onLost: ['log', 'throw'],
  returns: ['promise', 'observable'],
} as const;

const KNOWN: readonly string[] = [...Object.keys(CHOICES), 'onBusy', 'instance', ...ACQUIRE_OPTIONS];

/**
 * Checks the options of a decorator or an interceptor where it is applied.
 * @throws LockConfigError with the option, the rule and the value
 */
export function assertDistributedLockOptions(options: DistributedLockOptions): void {
  assertKnownOptions(options, KNOWN, 'DistributedLockOptions');
  for (const [option, value] of Object.entries(options as Record<string, unknown>)) {
    if (value === undefined) continue;
    if (option in CHOICES) {
      const allowed: readonly unknown[] = CHOICES[option as keyof typeof CHOICES];
      if (!allowed.includes(value))
        throw new LockConfigError(option, `must be ${allowed.join(' or ')}`, { value });
    }
  }
  const { onBusy, instance } = options;
  if (onBusy !== undefined && onBusy !== 'throw' && onBusy !== 'skip' && typeof onBusy !== 'function') {
    throw new LockConfigError('onBusy', "must be 'throw', 'skip' or a function", { value: onBusy });
  }
  assertInstanceName(instance, 'instance');
  resolveAcquireOptions(options);
}

/**
 * The same for an interceptor, which does not need `returns`.
 * @throws LockConfigError with the option, the rule and the value
 */
export function assertInterceptorOptions(options: LockInterceptorOptions): void {
  const known = KNOWN.filter((option) => option !== 'returns');
  assertKnownOptions(options, [...known, 'onKeyError'], 'LockInterceptor');
  const { onKeyError, ...others } = options;
  if (onKeyError !== undefined && typeof onKeyError !== 'function') {
    throw new LockConfigError('onKeyError', 'must be a function', { value: onKeyError });
  }
  assertDistributedLockOptions(others);
}
