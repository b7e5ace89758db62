import type { DeadlockStep } from '../../api/deadlock.js';
import type { LockHealth } from '../../api/health.js';
import type { LockState } from '../../api/lock-state.js';
import type { LockSummary } from '../../api/lock-summary.js';

/** The data of the page, as JSON. Times of day are ms by the clock of the sending process; `at` is its time of that moment. */
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
  /** The groups of which the last minutes are known. */
  readonly groups: readonly BoardGroup[];
  readonly problem: BoardProblem | null;
  readonly health: Pick<LockHealth, 'status' | 'nodes' | 'warnings'> | null;
  /** The deadlocks that stand now. */
  readonly deadlocks: readonly BoardDeadlock[];
  /** The newest last. */
  readonly changes: readonly BoardChange[];
}

/** The changes since the state or the update before. Absent parts are unchanged; of `changes` only the new ones are there. */
export interface BoardUpdate extends Partial<Omit<BoardState, 'at' | 'locks'>> {
  readonly at: number;
  /** Locks that are new or different. */
  readonly set?: readonly BoardLock[];
  /** The names of the locks that are neither held nor waited for any more. */
  readonly gone?: readonly string[];
}

export interface BoardLock {
  readonly name: string;
  /** The lock of an election is a plain one. */
  readonly kind: LockSummary['kind'] | 'election';
  readonly group: string;
  readonly holders: readonly BoardHolder[];
  /** The last token; 0 if none is known. */
  readonly token: number;
  readonly waiting: number;
  /** Since when the first of the queue waits; null if that is not known. */
  readonly waitingSince: number | null;
  /** The labels of the processes that wait, as far as they are known; of a long queue those that come first. */
  readonly waiters: readonly string[];
  /** How many grants of the lock have passed the first of the queue by. */
  readonly passed: number;
}

export interface BoardHolder {
  readonly label: string;
  readonly since: number | null;
  /** When it ends by itself; null if it has no end. */
  readonly until: number | null;
  /** ms from its last renewal to its end; null before one has been seen. */
  readonly lease: number | null;
  /** No renewal keeps it. */
  readonly fixed: boolean;
}

/** p50 and p99 of the last minutes, ms. */
export type Times = readonly [usual: number, most: number];

/** Locks with one label, or with names of one form. */
export interface BoardGroup {
  readonly name: string;
  /** Acquisitions of the sending process per minute; null if it has acquired none. */
  readonly rate: number | null;
  readonly wait: Times | null;
  readonly hold: Times | null;
  /** `hold` is of other processes, whose holds were seen to end. A hold that was shorter than the pause between two looks is missing. */
  readonly isSeen: boolean;
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

export interface BoardDeadlock {
  /** When it was seen first. */
  readonly at: number;
  readonly cycle: readonly DeadlockStep[];
}

/** A renewed lease has two thirds of its time left at least. If less than this share is left, nothing renews the lease. */
export const RENEWED_SHARE = 0.55;

/** How many changes are kept. */
export const MOST_CHANGES = 200;

/** Of the whole fleet, found between two looks at the store; or an event of the process that tells it. */
export interface BoardChange {
  readonly id: number;
  readonly at: number;
  readonly type: string;
  /** `bad`: locks may be lost. `note`: worth a look. */
  readonly tone: 'bad' | 'note' | 'calm';
  /** The lock; empty if it is of none. */
  readonly name: string;
  readonly text: string;
}

/** One lock in full; null if it is free. Through JSON its dates have become texts, and Infinity null. */
export interface BoardDetail {
  readonly at: number;
  readonly lock: LockState | null;
}
