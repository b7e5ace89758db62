import type { HealthStatus, NodeHealth, QuorumCharter, StoreWarning } from '../store/store-health.js';

/** The state of a LockService. */
export interface LockHealth {
  /**
   * - `up`: locks of all kinds can be taken and kept now, and nothing is missing.
   * - `degraded`: locks are kept, but something is missing: a minority of the nodes of a quorum, room in Redis for new
   *   locks, the messages that wake waiters (the waiters poll instead), or a right that most locks do without. On a cluster
   *   also a part of the masters: `nodes` says which, and only the locks of these masters can neither be taken nor kept.
   * - `down`: no lock can be taken or renewed, because the store does not answer or refuses what locks of some kind need,
   *   most nodes of a quorum are gone, or renewals do not succeed; or the service is shutting down.
   */
  readonly status: HealthStatus;
  /** Each server on its own: one, the masters of a cluster, or the nodes of a quorum. */
  readonly nodes: readonly NodeHealth[];
  /** Settings that can cost a lock, each with the cure. They do not change the status. */
  readonly warnings: readonly StoreWarning[];
  /** The charter of a quorum, as far as it is known. */
  readonly charter?: QuorumCharter | undefined;
  /** Leases that this process holds. */
  readonly held: number;
  /** Callers of this process that wait. */
  readonly waiting: number;
  /** Whole ms until the first renewed lease would end if no renewal succeeded; undefined when none is held. */
  readonly renewalHeadroom: number | undefined;
  /** Less than a third of a lease is left, because its renewals do not succeed. */
  readonly renewalStuck: boolean;
}
