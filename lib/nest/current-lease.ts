import { callersScope, currentScope } from '../client/scope/scope.js';
import { LockConfigError } from '../api/errors.js';
import { inQuotes } from '../runtime/text.js';
import type { Lease } from '../api/lock.js';
import { locksPassThrough } from './decorator/pass-through.js';

/**
 * The lease of `using`, the decorator or the interceptor under which the running code was called, the innermost of nested
 * ones; undefined outside of any. A lease by hand is not among them. Code that is not awaited and runs on when that callback has
 * ended gets undefined, even if another lock is held further out.
 */
export function currentLease(): Lease | undefined {
  return callersScope()?.leaseOfCallback as Lease | undefined;
}

/**
 * For code that must never run unlocked: a decorator is silently not in effect on an object that was made by hand, or in a
 * test. A lock is held here when `using`, the decorator or the interceptor has taken it around this code, or `acquire`
 * directly in `runInScope`. Any other lock that was acquired by hand belongs to its lease, which has `assertHeld()`.
 * @param name the lock that has to be held; any, when absent
 * @throws LockLostError when the lease has been lost
 * @throws LockConfigError when no such lock is held
 */
export function assertLocked(name?: string): void {
  if (currentScope()?.holds(name) === true) return;
  const lease = currentScope()?.innermostLease(
    (lease) => name === undefined || lease.name === name || lease.fencingTokens.has(name),
  ) as Lease | undefined;
  lease?.assertHeld();
  if (lease !== undefined || locksPassThrough() || currentScope()?.passesThrough() === true) return;
  throw new LockConfigError(
    'assertLocked',
    `this code runs without ${name === undefined ? 'any lock' : `the lock "${inQuotes(name)}"`}. Was its object made by Nest?`,
  );
}
