import type { LockHealth } from '../api/health.js';
import type { LockClient } from '../client/lock-client.js';
import type { ServiceState } from './service-state.js';

/** Asks every node of the store. Never rejects. */
export async function healthOf(
  { preflight, watchdog }: LockClient,
  state: ServiceState,
): Promise<LockHealth> {
  const { status, nodes, warnings, charter } = await preflight.report();
  const renewalStuck = watchdog.stuck;
  const headroom = watchdog.headroom();
  return {
    status: renewalStuck || state.isEnding() ? 'down' : status,
    nodes,
    warnings,
    ...(charter === undefined ? {} : { charter }),
    ...state.counts(),
    renewalHeadroom: headroom === undefined ? undefined : Math.floor(headroom),
    renewalStuck,
  };
}
