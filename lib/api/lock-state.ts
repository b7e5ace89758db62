/** The state of one lock in the store. */
export interface LockState {
  readonly name: string;
  readonly kind: 'lock' | 'fair' | 'read-write' | 'semaphore';
  /** Several if readers or permits share it. */
  readonly holders: readonly LockHolder[];
  /** ms until the lock is free by itself; Infinity when it has no end. */
  readonly remainingTime: number;
  /**
   * The last token given out for this name; undefined when none was. For a lock on `nodes` that another process holds, the
   * value may be greater than that token, never less.
   */
  readonly fencingToken: number | undefined;
  /**
   * How many wait: callers of this process and, for a plain lock, processes: in its queue, or subscribed to its release.
   */
  readonly waiters: { readonly local: number; readonly processes: number };
  /**
   * The waiters in order: for a plain lock the processes, for the other kinds the callers. A process that waits for the
   * release of a plain lock and has no entry is only counted. A waiter whose process has died, or has lost its connection for
   * messages, is left out if the store knows of it.
   */
  readonly queue: readonly LockWaiter[];
}

/** An entry in the queue of a lock. */
export interface LockWaiter {
  /** From 1 on. */
  readonly position: number;
  readonly owner: string;
  /** The label of its instance; undefined if it is not known, as for a wait of less than a second. */
  readonly label: string | undefined;
  /** Whether that is this service. */
  readonly local: boolean;
  readonly mode: 'exclusive' | 'shared';
  /** Waiting since, by the store's clock. */
  readonly since: Date;
}

/** An owner that has the lock, as the store sees it. */
export interface LockHolder {
  /** `kept:` and the owner, if the lock is kept for the `minHoldTime` of an owner that has released it. */
  readonly owner: string;
  /**
   * The label of its instance; undefined if it is not known: a holder of another library, or a hold of less than a second.
   */
  readonly label: string | undefined;
  /** Whether that is this service. */
  readonly local: boolean;
  /** `shared`: a reader, or a permit of a semaphore. */
  readonly mode: 'exclusive' | 'shared';
  /**
   * When this owner acquired it, by the store's clock; undefined if the store does not know. A hand-off inside of the
   * owner's process sends nothing to the store, so it changes neither the owner nor this time.
   */
  readonly since: Date | undefined;
  /** ms */
  readonly remainingTime: number;
}

/** Stands before the owner of a lock that is kept for the `minHoldTime` of that owner, which has released it. */
const KEPT = 'kept:';

export const keptFor = (owner: string): string => KEPT + owner;

export const isKept = (owner: string): boolean => owner.startsWith(KEPT);

/** The owner itself; of a kept lock, the one that has released it. */
export const keeperOf = (owner: string): string => (isKept(owner) ? owner.slice(KEPT.length) : owner);
