import type { NodeHealth } from './stores/lock-store.js';

/** How a LockService is doing. */
export interface LockHealth {
  /** `up`: the store answers. `down`: it does not, so no lock can be taken or renewed. */
  readonly status: 'up' | 'degraded' | 'down';
  readonly nodes: readonly NodeHealth[];
  /** Leases that this process holds. */
  readonly held: number;
  /** Callers of this process that wait. */
  readonly waiting: number;
  /** ms until the first renewed lease would end if no renewal came through; undefined when none is held. */
  readonly renewalHeadroom: number | undefined;
}
