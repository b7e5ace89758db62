import { describe, LockConfigError, LockKeyError } from '../lock.errors.js';
import type { AcquireOptions } from '../lock.options.js';
import { driftOf } from './deadline.js';

/** Longer names are more likely a mistake (a body, a token) than a name, and each costs that much on the wire. */
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
}

/** A whole number of ms from `least` on; Infinity only where `unbounded` says so. */
export function assertTime(
  option: string,
  value: unknown,
  { least = 0, unbounded = false }: { least?: number; unbounded?: boolean } = {},
): asserts value is number {
  if (unbounded && value === Infinity) return;
  if (!Number.isSafeInteger(value) || (value as number) < least) {
    const rule = `must be a whole number of milliseconds from ${String(least)} on`;
    throw new LockConfigError(option, `${rule}${unbounded ? ', or Infinity' : ''}`, { value });
  }
}

export function assertLeaseTime(value: unknown, option = 'leaseTime'): asserts value is number {
  assertTime(option, value, { least: 1 });
  if (value <= driftOf(value)) {
    throw new LockConfigError(option, 'must be longer than the allowance for clock drift, 1 % + 2 ms', {
      value,
    });
  }
}

/** What is given at a call or at a decorator; what is absent has a default. */
export function assertAcquireOptions({ waitTime, leaseTime, renew, signal }: AcquireOptions): void {
  if (waitTime !== undefined) assertTime('waitTime', waitTime, { unbounded: true });
  if (leaseTime !== undefined) assertLeaseTime(leaseTime);
  if (renew !== undefined && typeof renew !== 'boolean') {
    throw new LockConfigError('renew', 'must be true or false', { value: renew });
  }
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new LockConfigError('signal', 'must be an AbortSignal', { value: signal });
  }
}
