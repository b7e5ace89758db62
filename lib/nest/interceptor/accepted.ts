import { idleTimerAt, now } from '../../client/holding/deadline.js';
import { isLockConfigError } from '../../api/error-guards.js';
import { clearTimer } from '../../runtime/runtime.js';
import type { LockService } from '../../module/lock-service.js';
import { stateOf } from '../../module/service-state.js';

/** ms: a store that is out of reach delays the boot by no more. */
const LONGEST = 1_000;

/**
 * Asks the store whether it accepts this service at all, which one with a limit for leases can tell.
 * @throws LockConfigError when it does not: the nodes of the service are those of another quorum
 */
export async function assertAccepted(service: LockService): Promise<void> {
  // A double of the service has no state. If decorators take no locks, the store may not be there.
  const state = stateOf(service);
  const limit = state?.settings.enabled === true ? state.client.store.leaseLimit : undefined;
  if (state === undefined || limit === undefined) return;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = idleTimerAt(now() + LONGEST, () => {
      resolve(undefined);
    });
  });
  const refusal = await Promise.race([limit.raise('', state.settings.leaseTime), late]);
  clearTimer(timer);
  if (!isLockConfigError(refusal)) return;
  await service.close();
  throw refusal;
}
