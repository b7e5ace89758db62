/** {@link StoreHealth.status} says what each value means for locks. */
export type HealthStatus = 'up' | 'degraded' | 'down';

/** How thoroughly the store checks its servers. */
export type HealthDepth = 'look' | 'try';

/** The state of a store: all of its nodes together. */
export interface StoreHealth {
  /**
   * `up`: every node works completely. `degraded`: something is missing (a node of several, messages, room for new locks),
   * and the other nodes give out and keep locks. `down`: no lock can be taken or renewed.
   */
  readonly status: HealthStatus;
  readonly nodes: readonly NodeHealth[];
  /** The settings that can cost a lock, even if everything works now. */
  readonly warnings: readonly StoreWarning[];
  /** The charter of a quorum, as far as it is known. */
  readonly charter?: QuorumCharter | undefined;
}

/** What each node of a quorum remembers. */
export interface QuorumCharter {
  /** Distinguishes it from another quorum. */
  readonly id: string;
  /** ms for which a node that has restarted does not vote. */
  readonly longestLease: number;
  /** ms: the longest lease that may be given now, because every node has acknowledged it. */
  readonly allowedLease: number;
}

/** The state of one node. A field that the node does not report, or may not report, is undefined. */
export interface NodeHealth {
  readonly node: string;
  readonly status: HealthStatus;
  /** ms from the request to the answer; undefined without an answer. */
  readonly latency: number | undefined;
  /** Why the status is not `up`. */
  readonly error: string | undefined;
  /** Whether messages from the node arrive. Without messages, waiters poll. Undefined before the first wait or long hold. */
  readonly subscriber?: boolean | undefined;
  /** Distinguishes two servers, and a server from itself after a restart. */
  readonly runId?: string | undefined;
  readonly version?: string | undefined;
  readonly role?: 'master' | 'replica' | undefined;
  readonly replicas?: readonly ReplicaHealth[] | undefined;
  /** How many sentinels watch the node, if the connection does not ask them for the master. */
  readonly sentinels?: number | undefined;
  /** ms by which the node's clock is ahead of this process's clock. Nothing depends on it. */
  readonly clockOffset?: number | undefined;
  /** The `maxmemory-policy` of the node. */
  readonly evictionPolicy?: string | undefined;
  readonly persistence?: Persistence | undefined;
  /** ms since the node was started, in whole seconds. */
  readonly uptime?: number | undefined;
  /** ms for which a quorum does not count the votes of the node yet: it may have forgotten some votes in a restart. */
  readonly quarantine?: number | undefined;
}

/** A replica, as its master reports it. */
export interface ReplicaHealth {
  readonly node: string;
  /** The replica is in step with the master, and no longer copies its data. */
  readonly online: boolean;
  /** ms since the master last received something from the replica, in whole seconds. */
  readonly lag: number | undefined;
  /** Bytes of the replication stream that the replica has not confirmed. */
  readonly behind: number | undefined;
}

/** The data that a server keeps through a restart. */
export interface Persistence {
  /** Writes are logged as they happen. Without the log a restart forgets what came after the last snapshot. */
  readonly appendOnly: boolean;
  /** Wall-clock ms of the last snapshot, or of the server's start before the first snapshot. */
  readonly lastSave: number | undefined;
  /** The last attempt to save failed. */
  readonly failing: boolean;
}

/** A setting that can cost a lock. */
export interface StoreWarning {
  /** `eviction-policy`, `replica`, `same-server`, `command-timeout`… */
  readonly code: string;
  readonly node: string;
  /** The fault, its consequence and its correction. */
  readonly message: string;
}

/** A node has stopped or started to answer. */
export interface ConnectionChange {
  readonly node: string;
  readonly connected: boolean;
  /** The node had not been connected before. The change is not worth a report, but the node can be checked now. */
  readonly first?: boolean | undefined;
  readonly error?: unknown;
}
