import type { DeadlockStep } from '../../api/deadlock.js';
import type { HealthStatus } from '../../store/store-health.js';

/**
 * The data of the page, as JSON. Times of day are ms by the clock of the sending process; `at` is its time of that
 * moment.
 */
export interface BoardState {
  readonly at: number;
  /** The LockService that is looked at, and all that can be. */
  readonly instance: string;
  readonly instances: readonly string[];
  /** The label of the sending process. */
  readonly label: string;
  /** Whether viewers may ask for locks and take them away. */
  readonly writable: boolean;
  readonly locks: readonly BoardLock[];
  /** There are more locks than are shown. */
  readonly more: boolean;
  readonly problem: BoardProblem | null;
  readonly health: BoardHealth | null;
  readonly own: BoardOwn;
  readonly elections: readonly BoardElection[];
  readonly deadlocks: readonly BoardDeadlock[];
  /** The newest last. */
  readonly changes: readonly BoardChange[];
}

/** The changes since the state or the update before. Absent parts are unchanged. */
export interface BoardUpdate extends Partial<
  Pick<BoardState, 'more' | 'problem' | 'health' | 'own' | 'elections' | 'deadlocks' | 'changes'>
> {
  readonly at: number;
  /** Locks that are new or different. */
  readonly set?: readonly BoardLock[];
  /** The names of the locks that are neither held nor waited for any more. */
  readonly gone?: readonly string[];
  /** Only those that are new. */
  readonly changes?: readonly BoardChange[];
}

export type LockKindName = 'lock' | 'fair' | 'read-write' | 'semaphore';

export interface BoardLock {
  readonly name: string;
  readonly kind: LockKindName;
  readonly holders: readonly BoardHolder[];
  /** The last token; 0 if none is known. */
  readonly token: number;
  readonly waiting: number;
  /** Since when the first of the queue waits. */
  readonly waitingSince: number | null;
}

export interface BoardHolder {
  readonly label: string;
  readonly since: number | null;
  /** When it ends by itself; null if it has no end. */
  readonly until: number | null;
  /** ms: the length of the lease as far as it can be told, for the bar. */
  readonly lease: number | null;
}

/** Why the shown state is not the present one. */
export interface BoardProblem {
  /** `slow`: a look at the store has begun and is not over. `failed`: the store does not answer, or refuses. */
  readonly kind: 'slow' | 'failed';
  readonly since: number;
  /** When the shown state was read; null before the first one. */
  readonly seen: number | null;
  /** The reason of the store; empty if it is slow. */
  readonly message: string;
}

/** The locks of the process that tells, as of its last look at the store. */
export interface BoardOwn {
  readonly held: number;
  readonly waiting: number;
}

export interface BoardHealth {
  readonly status: HealthStatus;
  readonly nodes: readonly BoardNode[];
  readonly warnings: readonly { readonly code: string; readonly node: string; readonly message: string }[];
}

export interface BoardNode {
  readonly node: string;
  readonly status: HealthStatus;
  readonly latency: number | null;
  readonly error: string | null;
  /** Version, role, replicas, in words. */
  readonly notes: readonly string[];
}

export interface BoardElection {
  readonly name: string;
  readonly state: 'idle' | 'follower' | 'leading' | 'resigning';
  readonly leader: { readonly label: string; readonly term: number } | null;
}

export interface BoardDeadlock {
  readonly at: number;
  readonly cycle: readonly DeadlockStep[];
  /**
   * `stands`: its members wait now. `broken`: one of them has ended, so that the others go on. `told`: members of this
   * process have reported it, and it has ended or has just begun.
   */
  readonly state: 'stands' | 'broken' | 'told';
}

/** Of the whole fleet, found between two looks at the store; or an event of the process that tells it. */
export interface BoardChange {
  readonly id: number;
  readonly at: number;
  readonly type:
    | 'acquired'
    | 'released'
    | 'handed-on'
    | 'waiting'
    | 'waiting-over'
    | 'lost'
    | 'timed-out'
    | 'deadlock'
    | 'lock-order'
    | 'waiting-long'
    | 'held-long'
    | 'renewal-failed'
    | 'release-failed'
    | 'release-requested'
    | 'release-request-sent'
    | 'force-released'
    | 'warning'
    | 'disconnected'
    | 'reconnected';
  /** The lock; empty if it is of none. */
  readonly name: string;
  readonly text: string;
}

/** One lock in full: the answer to a look at it. */
export interface BoardDetail {
  readonly at: number;
  readonly name: string;
  /** Null if the lock is free. */
  readonly lock: {
    readonly kind: LockKindName;
    readonly token: number | null;
    readonly holders: readonly BoardDetailHolder[];
    readonly queue: readonly BoardWaiter[];
    /** How many wait beside the queue: processes that wait for the release of a plain lock. */
    readonly listeners: number;
  } | null;
}

export interface BoardDetailHolder {
  readonly label: string | null;
  readonly owner: string;
  readonly mode: 'exclusive' | 'shared';
  readonly since: number | null;
  readonly until: number | null;
}

export interface BoardWaiter {
  readonly label: string | null;
  readonly owner: string;
  readonly mode: 'exclusive' | 'shared';
  readonly since: number;
}
