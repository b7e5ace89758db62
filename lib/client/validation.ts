import { MAX_REASON } from '../api/asker.js';
import { LockConfigError, LockKeyError } from '../api/errors.js';
import { describe, withoutAddress } from '../api/describe.js';
import { cureOf, timeOf } from '../api/duration.js';
import type { AcquireOptions, AnswerOptions, ReasonOptions } from '../api/options.js';
import type { CheckedAcquireOptions } from '../api/resolved-options.js';
import { inQuotes, isSeen } from '../runtime/text.js';
import { RESERVED } from '../store/lock-store.js';
import { driftOf } from './holding/deadline.js';
import { nearest } from '../runtime/nearest.js';

/** A longer name is probably a mistake (a body, a token), and every command sends the name. */
export const MAX_NAME_BYTES = 1_024;

export function assertName(name: unknown): asserts name is string {
  if (typeof name !== 'string') {
    throw new LockKeyError(`A lock's name must be a string (found: ${describe(name)})`);
  }
  if (name === '') throw new LockKeyError("A lock's name must not be empty", name);
  const bytes = Buffer.byteLength(name);
  if (bytes > MAX_NAME_BYTES) {
    const rule = `A lock's name must have at most ${String(MAX_NAME_BYTES)} bytes`;
    throw new LockKeyError(`${rule} (found: ${String(bytes)}, ${describe(name)})`, name);
  }
  if (!name.isWellFormed()) {
    throw new LockKeyError(
      `A lock's name must be well-formed Unicode, or two names become one in Redis (found: ${describe(name)})`,
      name,
    );
  }
  if (name.includes(RESERVED)) {
    const rule = `A lock's name must not contain "${RESERVED}", which marks the keys beside the lock`;
    throw new LockKeyError(`${rule} (found: ${describe(name)})`, name);
  }
}

/** @throws LockConfigError */
export function leaseTimeOf(value: unknown, option = 'leaseTime'): number {
  const time = timeOf(option, value, { least: 1 });
  if (time > driftOf(time)) return time;
  throw new LockConfigError(option, 'must be longer than the allowance for clock drift, 1 % + 2 ms', {
    value,
  });
}

/**
 * Without this check, a misspelt option would count as absent, and its default would apply.
 * @param owner the function or decorator that takes the options, for the message
 */
export function assertKnownOptions(
  options: unknown,
  known: readonly string[],
  owner: string,
): asserts options is object {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new LockConfigError('options', 'must be an object', { value: options });
  }
  for (const option of Object.keys(options))
    if (!known.includes(option)) throw unknownOption(option, known, owner);
}

/**
 * A spread copies own properties only: entries of a Map and getters of a class would count as absent.
 * @throws LockConfigError
 */
export function assertOwnOptions(options: object, known: readonly string[]): void {
  const prototype: unknown = Object.getPrototypeOf(options);
  if (prototype === Object.prototype || prototype === null) return;
  if (Symbol.iterator in options) {
    throw new LockConfigError('options', 'must be a plain object', { value: options });
  }
  const inherited = known.find((option) => option in options && !Object.hasOwn(options, option));
  if (inherited === undefined) return;
  throw new LockConfigError(
    inherited,
    'must be a property of the options themselves, and not of their class',
    {
      value: options,
    },
  );
}

function unknownOption(option: string, known: readonly string[], owner: string): LockConfigError {
  const meant = nearest(option, known);
  const all = known.join(', ');
  const rule =
    meant === undefined
      ? `is not an option of ${owner}; there are ${all}`
      : `is not an option of ${owner}, did you mean ${meant}? There are ${all}`;
  return new LockConfigError(withoutAddress(option) ?? inQuotes(option), rule);
}

export const KINDS = ['lock', 'fair', 'read', 'write'] as const;

/** The options of one acquisition of a lock whose kind is known. */
export const ACQUIRE_OPTIONS = [
  'waitTime',
  'leaseTime',
  'renew',
  'signal',
  'minHoldTime',
  'maxWaiting',
  'failFast',
  'reentrant',
  'label',
] as const;

/** The options of an acquisition by name, which also take the kind. */
export const NAMED_OPTIONS: readonly string[] = [...ACQUIRE_OPTIONS, 'kind'];

/** A longer label is probably a lock name or a body, not a group of locks. */
export const MAX_LABEL = 1_024;

/** The times of a module that limit the options of its calls, ms. */
export interface ModuleTimes {
  readonly leaseTime: number;
  readonly maxHoldTime: number;
}

/**
 * Checks the options of a call or a decorator. Absent options have defaults.
 * @param times undefined if the service is not known yet
 * @throws LockConfigError with the option, the rule and the value
 */
export function resolveAcquireOptions(options: AcquireOptions, times?: ModuleTimes): CheckedAcquireOptions {
  const { renew, signal, maxWaiting, failFast, reentrant, label } = options;
  const waitTime =
    options.waitTime === undefined ? undefined : timeOf('waitTime', options.waitTime, { unbounded: true });
  const leaseTime = options.leaseTime === undefined ? undefined : leaseTimeOf(options.leaseTime);
  const minHoldTime =
    options.minHoldTime === undefined ? undefined : timeOf('minHoldTime', options.minHoldTime);
  if (renew !== undefined) assertSwitch('renew', renew);
  if (failFast !== undefined) assertSwitch('failFast', failFast);
  if (reentrant !== undefined) assertSwitch('reentrant', reentrant);
  assertSignal(signal);
  if (maxWaiting !== undefined) assertMaxWaiting(maxWaiting);
  if (label !== undefined) assertGroup(label);
  const resolved = {
    waitTime,
    leaseTime,
    renew,
    signal,
    minHoldTime,
    maxWaiting,
    failFast,
    reentrant,
    label,
  };
  assertMinHoldTime(resolved, times);
  return resolved;
}

/** @throws LockConfigError */
function assertGroup(label: unknown): void {
  if (typeof label === 'string' && label !== '' && label.length <= MAX_LABEL) return;
  throw new LockConfigError('label', `must be a text of 1 to ${String(MAX_LABEL)} characters`, {
    value: label,
  });
}

/** By shape, because a polyfill or another realm (such as jsdom) has its own AbortSignal class. */
const isSignal = (value: unknown): boolean => {
  const { aborted, addEventListener, removeEventListener } = (value ?? {}) as Partial<AbortSignal>;
  return (
    typeof aborted === 'boolean' &&
    typeof addEventListener === 'function' &&
    typeof removeEventListener === 'function'
  );
};

/** @throws LockConfigError */
export function assertSignal(signal: unknown): asserts signal is AbortSignal | undefined {
  if (signal === undefined || signal instanceof AbortSignal || isSignal(signal)) return;
  throw new LockConfigError('signal', 'must be an AbortSignal', { value: signal });
}

/**
 * The signal of a call that takes no other option.
 * @throws LockConfigError
 */
export function signalOf(options: AnswerOptions | undefined, method: string): AbortSignal | undefined {
  if (options === undefined) return undefined;
  assertKnownOptions(options, ['signal'], method);
  assertSignal(options.signal);
  return options.signal;
}

/**
 * The reason of a release request or of a forced release.
 * @throws LockConfigError
 */
export function reasonOf(options: ReasonOptions | undefined, method: string): string | undefined {
  if (options === undefined) return undefined;
  assertKnownOptions(options, ['reason'], method);
  const { reason } = options as { readonly reason?: unknown };
  if (reason === undefined) return undefined;
  if (typeof reason === 'string' && isSeen(reason) && reason.length <= MAX_REASON) return reason;
  const rule = `must be a text of 1 to ${String(MAX_REASON)} characters, not only spaces and invisible ones`;
  throw new LockConfigError('reason', rule, { value: reason });
}

/** @throws LockConfigError */
export function assertSwitch(option: string, value: unknown): asserts value is boolean {
  if (typeof value !== 'boolean') throw new LockConfigError(option, 'must be true or false', { value });
}

/** @throws LockConfigError */
export function assertMaxWaiting(value: unknown): asserts value is number {
  if (value === Infinity || (Number.isSafeInteger(value) && (value as number) >= 1)) return;
  const rule = `must be a whole number from 1 on, or Infinity${cureOf(value)}`;
  throw new LockConfigError('maxWaiting', rule, { value });
}

/**
 * A fixed lease ends by itself, and a renewed lease ends at `maxHoldTime`. Neither can keep a longer `minHoldTime`: if
 * a callback outlived the lease, the lock would be free before that time.
 */
function assertMinHoldTime(
  { minHoldTime = 0, leaseTime, renew }: CheckedAcquireOptions,
  { leaseTime: ofModule, maxHoldTime }: ModuleTimes = { leaseTime: Infinity, maxHoldTime: Infinity },
): void {
  const fixed = leaseTime ?? (renew === false ? ofModule : undefined);
  if (fixed === undefined || renew === true) {
    if (minHoldTime <= maxHoldTime) return;
    const rule = `must not be longer than maxHoldTime, ${String(maxHoldTime)} ms, at which the lease ends`;
    throw new LockConfigError('minHoldTime', rule, { value: minHoldTime });
  }
  if (minHoldTime <= fixed) return;
  throw new LockConfigError(
    'minHoldTime',
    `must not be longer than the fixed lease of ${String(fixed)} ms, which ends by itself before it; set renew: true, or a ` +
      'longer leaseTime',
    { value: minHoldTime },
  );
}
