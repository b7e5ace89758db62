/** What the store knows of one lock. */
export interface LockState {
  readonly name: string;
  readonly kind: 'lock';
  readonly holders: readonly LockHolder[];
  /** ms until the lock is free by itself; Infinity when it has no end. */
  readonly remainingTime: number;
  /** The last token given out for this name; undefined when none was. */
  readonly fencingToken: number | undefined;
  /** How many wait: callers of this process, and processes elsewhere that listen for the release. */
  readonly waiters: { readonly local: number; readonly processes: number };
}

export interface LockHolder {
  readonly owner: string;
  /** Whether that is this service. */
  readonly local: boolean;
  /** When it was acquired, by the store's clock; undefined for a holder that is not of this package. */
  readonly since: Date | undefined;
  /** ms */
  readonly remainingTime: number;
}
