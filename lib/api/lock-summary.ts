/** Which locks to list. */
export interface ListOptions {
  /** Only the locks whose names begin with it. @default all */
  prefix?: string | undefined;
  /** `held`: only the locks with a holder. `waited`: only the locks that a caller waits for. @default both */
  state?: 'held' | 'waited' | undefined;
  /** How many locks a page has at most, from 1 to 1,000. @default 100 */
  limit?: number | undefined;
  /** The cursor of the page before. @default the first page */
  cursor?: string | undefined;
  /** Ends the wait for the answer, with LockAbortedError. */
  signal?: AbortSignal | undefined;
}

/** A page of locks. */
export interface LockPage {
  readonly locks: LockSummary[];
  /** Gives the next page; null after the last one. */
  readonly cursor: string | null;
}

/** A lock that is held or waited for, as the store sees it. */
export interface LockSummary {
  readonly name: string;
  readonly kind: 'lock' | 'fair' | 'read-write' | 'semaphore';
  /** Several where readers or permits share it; none where callers wait for what is about to be granted. */
  readonly holders: {
    /** What its instance is called; the owner where that is not known. */
    readonly label: string;
    /**
     * ms since the acquisition; NaN where the store does not know it: for a holder of another library, and where several share
     * the lock for all but the last to acquire it.
     */
    readonly since: number;
    /** ms until it ends by itself; Infinity where it has no end. */
    readonly remaining: number;
    /** The last token of the lock. */
    readonly fencingToken: number;
  }[];
  /**
   * How many wait: for a plain lock processes, for the other kinds callers. A waiter whose process has died, or has lost its
   * connection for messages, does not count where the store knows of it.
   */
  readonly waiting: number;
  /** ms for which the first of the queue has waited; null where its queue is empty. */
  readonly longestWait: number | null;
}
