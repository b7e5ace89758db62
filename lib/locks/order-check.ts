import { callSite } from '../core/call-site.js';
import type { LockClient } from '../core/lock-client.js';
import { lockOrder, type OrderedGroup } from '../core/lock-order.js';
import type { ScopedHold } from '../core/scope.js';
import { LockConfigError } from '../lock.errors.js';
import { type LockOrderConflict, describeConflict } from '../lock.order.js';

/** A lock that is asked for under others. */
export interface OrderedLock {
  readonly name: string;
  readonly group: string;
  readonly client: LockClient;
}

/**
 * Looks at the order in which a caller takes locks, before it waits. Each pair of labels is looked at once.
 * @throws LockConfigError where the module's `lockOrder` is `throw`, every time
 */
export function checkOrder(around: readonly ScopedHold[], locks: readonly OrderedLock[]): void {
  let at: string | undefined;
  const site = () => (at ??= callSite());
  for (const { name, group, client } of locks) {
    const acquired = { client: client.id, group };
    for (const hold of around) {
      const held = { client: hold.clientId, group: hold.group };
      // The two sides of a read-write lock, or two permits of a semaphore.
      if (hold.name === name && hold.clientId === client.id) continue;
      if (!lockOrder.knows(held, acquired))
        added(held, acquired, { name, heldName: hold.name }, client, site);
    }
  }
}

function added(
  held: OrderedGroup,
  acquired: OrderedGroup,
  names: Pick<LockOrderConflict, 'name' | 'heldName'>,
  client: LockClient,
  site: () => string | undefined,
): void {
  // A graph that is full finds nothing more, and each further call would pay for its stack.
  if (lockOrder.isFull) return;
  const former = lockOrder.path(acquired, held);
  const step = { held: held.group, acquired: acquired.group, at: site() };
  const conflict = former && { ...names, step, former };
  if (conflict !== undefined && client.options.lockOrder === 'throw') {
    throw new LockConfigError('lockOrder', describeConflict(conflict), { key: names.name });
  }
  if (lockOrder.add(held, acquired, step)) {
    client.warn({
      code: 'lock-order-full',
      message:
        'The order of locks is not checked any further: this process has taken locks of 1,000 labels, or in 10,000 pairs, under ' +
        'each other. Locks without a label count by name: give locks that are made by hand a label',
    });
  }
  if (conflict !== undefined) client.events.next({ type: 'lock-order', label: acquired.group, ...conflict });
}
