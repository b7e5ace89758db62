import type { Observable } from 'rxjs';
import type { Duration } from './duration.js';
import type { AnswerOptions } from './options.js';

/**
 * The part that this process has in the election of one leader among all processes. The leader holds the plain lock of the
 * election's name, so exclusion, order, fencing and the end of a term are those of the lock.
 */
export interface Election {
  /** The name of the election, which is the name of its lock. */
  readonly name: string;

  /**
   * - `idle`: nothing runs here
   * - `follower`: it campaigns
   * - `leading`: the callback runs, inside of the lease's promise
   * - `resigning`: the callback has been told to end, by a resignation, a loss or a shutdown, and has not ended yet
   */
  readonly state: 'idle' | 'follower' | 'leading' | 'resigning';

  /**
   * Whether this process leads: the present value, then each change. Subscribers run outside of any scope. Completes at
   * shutdown.
   */
  readonly leader$: Observable<boolean>;

  /**
   * Campaigns until this process leads, runs the callback, and campaigns again when the term is lost or resigned, as soon as
   * the callback has ended: one process never runs two terms at once. A store that does not answer is asked again with
   * growing pauses, and one warning says so.
   *
   * Resolves when the callback returns, when the signal aborts, and when the service shuts down; the callback has ended and
   * the lock is released by then. Rejects with the callback's error. An error that comes after the signal of its term has
   * aborted ends only that term. It is a warning, unless it is an error of the abort itself.
   *
   * The callback runs under the lock, as in `using`: nested work re-enters it.
   * @throws LockConfigError when it runs already, or when the callback gives what is read later, such as an Observable
   * @throws LockKindMismatchError when the name is in use as another kind of lock
   * @throws LockClosedError when the service was shutting down before the call
   */
  run(callback: (term: Term) => unknown, options?: AnswerOptions): Promise<void>;

  /** Whether this process leads now, by its monotonic clock: true only inside of the lease's promise. Sends nothing. */
  isLeader(): boolean;

  /**
   * The leader, as the store knows: what its instance is called (its client id where that is not known yet), and its term.
   * Null where there is none. On `nodes` the term of another process may be greater than its fencing token.
   * @throws LockUnavailableError when the store did not answer in time
   */
  leader(): Promise<{ label: string; term: number } | null>;

  /**
   * Gives the leadership up: aborts the signal of the term and waits until the lock is released, which happens when the
   * callback has ended, or at the deadline that the lease has now. Then `run` campaigns again, behind the others. Never
   * rejects, and does nothing where this process does not lead. Inside of the callback, or of a call of `@OnlyLeader`, it does
   * not wait.
   */
  resign(): Promise<void>;
}

/** One time of leading. */
export interface Term {
  /** The name of the election, which is the name of its lock. */
  readonly name: string;

  /** The fencing token of the lock: a safe integer that grows with each term. */
  readonly number: number;

  /**
   * Aborted when the term is over, in whatever way, and at the latest at the deadline of the lease. Its reason is a
   * LockLostError after a loss, a LockClosedError at shutdown, the reason of the signal of `run`, else an AbortError.
   */
  readonly signal: AbortSignal;
}

/** How a process takes part in an election. */
export interface ElectionOptions {
  /**
   * How long a leader that died is still the leader. Renewed while the leader lives. It may be given anew as long as the
   * election is idle. @default the module's `leaseTime`
   */
  leaseTime?: Duration | undefined;
}
