import type { LockHealth } from '../api/health.js';
import type { LockClient } from '../client/lock-client.js';
import { now } from '../client/holding/deadline.js';
import { Hold } from '../locks/hold.js';
import { afterPortion, portionsOf } from '../runtime/portions.js';
import type { ServiceState } from './service-state.js';

/** Asks every node of the store. Never rejects. */
export async function healthOf(
  { preflight, tenures, callers }: LockClient,
  state: ServiceState,
): Promise<LockHealth> {
  const { status, nodes, warnings, charter } = await preflight.report();
  let held = 0;
  let headroom = Infinity;
  let renewalStuck = false;
  for (const portion of portionsOf(tenures)) {
    const time = now();
    for (const tenure of portion) {
      if (!tenure.isFixed) headroom = Math.min(headroom, tenure.deadline - time);
      renewalStuck ||= tenure.overdue;
      if (tenure.user instanceof Hold && tenure.user.held) held += tenure.user.count;
    }
    await afterPortion(portion);
  }
  return {
    status: renewalStuck || state.isEnding() ? 'down' : status,
    nodes,
    warnings,
    ...(charter === undefined ? {} : { charter }),
    held,
    waiting: callers.waiting,
    renewalHeadroom: headroom === Infinity ? undefined : Math.floor(headroom),
    renewalStuck,
  };
}
