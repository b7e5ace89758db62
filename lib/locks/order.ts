import { callSite } from '../client/scope/call-site.js';
import { lockOrder } from '../client/scope/order-graph.js';
import type { ScopedHold } from '../client/scope/scope.js';
import { LockConfigError } from '../api/errors.js';
import { describeConflict } from '../api/lock-order.js';
import type { StoreLock } from './store-lock.js';

/** The label of all locks for work that runs once per period. */
export const ONCE = 'once';

/**
 * The group of a lock in the lock order: the label that the caller has chosen, or else the name. Default labels say
 * nothing about the order.
 */
export const orderGroup = (name: string, label: string | undefined): string =>
  label === undefined || label === ONCE ? name : label;

/**
 * Checks the order in which a caller takes locks, before it waits. Each pair of groups is checked once; for a known
 * pair, this costs one look-up and no allocation.
 * @throws LockConfigError if the module's `lockOrder` is `throw`, every time
 */
export function checkOrder(
  around: readonly ScopedHold[],
  locks: readonly StoreLock[],
  label: string | undefined,
): void {
  for (const lock of locks) {
    const group = orderGroup(lock.name, label);
    for (const hold of around) {
      // The two sides of a read-write lock, or two permits of a semaphore.
      if (hold.name === lock.name && hold.clientId === lock.client.id) continue;
      if (!lockOrder.knows(hold.clientId, hold.group, lock.client.id, group)) added(hold, lock, group);
    }
  }
}

function added(hold: ScopedHold, { name, client }: StoreLock, group: string): void {
  // A full graph finds nothing new, and each call would pay for its stack.
  if (lockOrder.isFull) return;
  const held = { client: hold.clientId, group: hold.group };
  const acquired = { client: client.id, group };
  const former = lockOrder.path(acquired, held);
  const step = { held: held.group, acquired: group, at: callSite() };
  const conflict = former && { name, heldName: hold.name, step, former };
  if (conflict !== undefined && client.options.lockOrder === 'throw') {
    throw new LockConfigError('lockOrder', describeConflict(conflict), { key: name });
  }
  if (lockOrder.add(held, acquired, step)) {
    client.warn({
      code: 'lock-order-full',
      message:
        'The order of locks is not checked any further: this process has taken locks of 1,000 labels, or in 10,000 pairs, under ' +
        'each other. Locks without a label count by name: give locks that are made by hand a label',
    });
  }
  if (conflict !== undefined) client.events.next({ type: 'lock-order', label: group, ...conflict });
}
