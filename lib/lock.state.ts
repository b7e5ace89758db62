/** What the store knows of one lock. */
export interface LockState {
  readonly name: string;
  readonly kind: 'lock' | 'fair' | 'read-write' | 'semaphore';
  /** Several where readers or permits share it. */
  readonly holders: readonly LockHolder[];
  /** ms until the lock is free by itself; Infinity when it has no end. */
  readonly remainingTime: number;
  /**
   * The last token given out for this name; undefined when none was. Of a lock on `nodes` that another process holds it may
   * be greater than that, never less.
   */
  readonly fencingToken: number | undefined;
  /** How many wait: callers of this process and, of a plain lock, processes: in its queue, or listening for its release. */
  readonly waiters: { readonly local: number; readonly processes: number };
  /** Who waits, in order: callers of the kinds whose callers each have a place. In the queue of a plain lock stand processes. */
  readonly queue: readonly LockWaiter[];
}

/** A place in the queue of a fair lock, a read-write lock or a semaphore. */
export interface LockWaiter {
  /** From 1 on. */
  readonly position: number;
  readonly owner: string;
  /** Whether that is this service. */
  readonly local: boolean;
  readonly mode: 'exclusive' | 'shared';
  /** Waiting since, by the store's clock. */
  readonly since: Date;
}

/** Who has the lock, as the store sees it. */
export interface LockHolder {
  readonly owner: string;
  /** Whether that is this service. */
  readonly local: boolean;
  /** `shared`: a reader, or a permit of a semaphore. */
  readonly mode: 'exclusive' | 'shared';
  /**
   * When this owner acquired it, by the store's clock; undefined where the store does not know. A hand-off inside of the
   * owner's process sends nothing to the store, so it moves neither the owner nor this time.
   */
  readonly since: Date | undefined;
  /** ms */
  readonly remainingTime: number;
}
