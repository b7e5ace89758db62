import {
  ACQUIRE_OPTIONS,
  assertKnownOptions,
  assertOwnOptions,
  KINDS,
  type ModuleTimes,
  resolveAcquireOptions,
} from '../client/validation.js';
import { LockConfigError } from '../api/errors.js';
import type { DistributedLockOptions } from '../api/options.js';

const CHOICES = {
  kind: KINDS,
  onLost: ['log', 'throw'],
  returns: ['promise', 'observable'],
} as const;

/** The options of a preset of the module. */
export const PRESET_OPTIONS: readonly string[] = ['kind', 'onLost', 'onBusy', ...ACQUIRE_OPTIONS];

/** What may change from call to call. */
export const CALL_OPTIONS: readonly string[] = [...PRESET_OPTIONS, 'preset'];

/**
 * Checks the options of a locked method.
 * @param known the options that are allowed in this place
 * @param owner the receiver of the options, for the message
 * @param times undefined if the service is not known yet
 * @throws LockConfigError with the option, the rule and the value
 */
export function assertMethodOptions(
  options: DistributedLockOptions,
  known: readonly string[],
  owner: string,
  times?: ModuleTimes,
): void {
  assertKnownOptions(options, known, owner);
  assertOwnOptions(options, known);
  for (const [option, value] of Object.entries(options as Record<string, unknown>)) {
    if (value === undefined || !(option in CHOICES)) continue;
    const allowed: readonly unknown[] = CHOICES[option as keyof typeof CHOICES];
    if (!allowed.includes(value)) {
      throw new LockConfigError(option, `must be ${allowed.join(' or ')}`, { value });
    }
  }
  const { onBusy, preset, signal, ...acquire } = options;
  if (onBusy !== undefined && onBusy !== 'throw' && onBusy !== 'skip' && typeof onBusy !== 'function') {
    throw new LockConfigError('onBusy', "must be 'throw', 'skip' or a function", { value: onBusy });
  }
  if (preset !== undefined && typeof preset !== 'string') {
    throw new LockConfigError('preset', 'must be the name of a preset of the module', { value: preset });
  }
  resolveAcquireOptions(typeof signal === 'function' ? acquire : { ...acquire, signal }, times);
}
