import type { Lease, LockService } from '../../../lib/index.js';
import { until } from '../../scenarios/until.js';

/** A plain and a fair lock, from one service to another that waits for it. `held` is run before each release. */
export async function handedOver(
  one: LockService,
  two: LockService,
  held: (lease: Lease) => unknown = () => undefined,
): Promise<void> {
  for (const lockOf of [
    (locks: LockService) => locks.getLock('plain'),
    (locks: LockService) => locks.getFairLock('fair'),
  ]) {
    const lease = await lockOf(one).acquire();
    const waiting = lockOf(two).acquire();
    await until(async () => {
      const state = await one.inspect(lease.name);
      return (state?.waiters.processes ?? 0) + (state?.queue.length ?? 0) > 0;
    });
    await held(lease);
    await lease.release();
    await (await waiting).release();
  }
}
