import type { Duration } from './duration.js';
import type {
  AcquireOptions,
  AnswerOptions,
  HandOverOptions,
  ReasonOptions,
  UsingOptions,
} from './options.js';

/** One name, to be held by one owner at a time. All times are milliseconds. */
export interface Lock {
  /** The name as it was given, without the keyPrefix. For a multi-lock, its names with commas. */
  readonly name: string;

  /**
   * Waits for the lock, `waitTime` at most (the module's default: 10 s). `{ waitTime: Infinity }` waits for ever.
   *
   * The lease is an owner of its own: a second `acquire` waits for it, also in the same async context. Two cases are
   * different. Inside of `using`, the decorator or the interceptor, `acquire` re-enters the lock that these hold. And a
   * lock that is acquired directly in {@link LockService.runInScope} belongs to that scope, which re-enters it.
   * @throws LockTimeoutError when the lock is still busy after that time
   * @throws LockUnavailableError when the store did not answer in time
   * @throws LockAbortedError when `signal` fires
   * @throws LockLostError when it re-enters a hold that has been lost
   * @throws LockConfigError when it re-enters a hold for a fixed lease that is longer than `maxHoldTime` leaves
   * @throws LockClosedError when the application is shutting down
   */
  acquire(options?: AcquireOptions): Promise<Lease>;

  /** As `acquire`, but does not wait unless `waitTime` says so, and gives null where `acquire` throws LockTimeoutError. */
  tryAcquire(options?: AcquireOptions): Promise<Lease | null>;

  /**
   * Holds the lock while the callback runs, in a scope that holds this lock and nothing else: what the callback calls
   * re-enters the lock. The lock is released in all cases. The caller gets the callback's own result or error, never an
   * error of the release. A result that is read or run only later, such as an iterator, a stream or an Observable, is
   * refused with LockConfigError.
   */
  using<T>(callback: (lease: Lease) => T | Promise<T>): Promise<T>;
  using<T>(options: UsingOptions, callback: (lease: Lease) => T | Promise<T>): Promise<T>;

  /** Whether any owner holds it, as the store knows. */
  isLocked(): Promise<boolean>;

  /**
   * Whether the current scope holds it: whether `using`, the decorator or the interceptor has taken it around this code, or
   * `acquire` directly in `runInScope`. Any other lock that was acquired by hand is known only by its lease. Sends nothing.
   */
  isHeld(): boolean;

  /**
   * How many leases share the hold of the current scope, including leases that were acquired by hand inside of it; 0 when
   * it does not hold the lock.
   */
  holdCount(): number;

  /** What is left of the present hold in the store, for any holder: 0 when free, Infinity when it has no end. */
  remainingTime(): Promise<number>;

  /**
   * Takes the lock away from its holders. Only for an administrator in an emergency, because the holders go on without it.
   * The holders of this process, and the holders that have held it for a second, are told at once, others within a third of
   * their lease. The side of a read-write lock takes only what is held on that side: `read` the readers, `write` the
   * writer.
   *
   * The event `lost` of a holder that is told at once names the label of this service and the `reason`, as its
   * LockLostError does.
   * @returns false when there was no holder
   * @throws LockConfigError when the reason is empty or longer than 1,000 characters
   */
  forceRelease(options?: ReasonOptions): Promise<boolean>;
}

/** The right to act until a deadline. It ends once: released by you, or lost. All times are milliseconds. */
export interface Lease extends AsyncDisposable {
  /** The name of its lock. */
  readonly name: string;

  /** The owner, as the store sees it: `<client id>:<number>`. */
  readonly owner: string;

  /**
   * A safe integer that grows with every acquisition of this name. Send it along with every write, and let the resource
   * refuse a smaller one than it has seen. Only that stops a holder that was paused.
   */
  readonly fencingToken: number;

  /**
   * The token of each name that it holds. A multi-lock has several, and its `fencingToken` is the greatest of them. A name
   * that it holds on two services is in the map once, with the greater token: take the two locks by themselves where both are
   * needed.
   */
  readonly fencingTokens: ReadonlyMap<string, number>;

  /** The group of its lock in events, traces and metrics; see {@link AcquireOptions.label}. */
  readonly label: string;

  /** When it was acquired, by the clock of this process. `inspect` tells what the store's clock says. */
  readonly acquiredAt: Date;

  /** ms since it was acquired; after its end, for how long it was held. */
  heldFor(): number;

  /** Aborted with LockLostError when the lease is lost; not on release. Its listeners run outside of any scope. */
  readonly signal: AbortSignal;

  /**
   * Aborted when another asks for the lock by {@link LockService.requestRelease}, with an Error whose message tells the label
   * of the service that asks, and why. The lease stays as it is: the holder decides whether it comes to an end sooner. It
   * aborts once; each request is an event `release-requested`. A request concerns all leases that share the hold, also
   * later ones, and not the next holder. Its listeners run outside of any scope.
   */
  readonly releaseRequested: AbortSignal;

  /** Whether the lease is promised right now, by this process's monotonic clock. */
  readonly held: boolean;

  /** ms still promised; 0 when it is not held. */
  remainingTime(): number;

  /**
   * Makes the lease last at least so long from now, in the store; {@link remainingTime} allows for the drift of the two
   * clocks. Never shortens it. A store that does not answer, as when its connection is reset, is asked once more while the
   * lease lasts.
   * @throws LockConfigError when that is longer than `maxHoldTime` leaves a lease that is renewed; nothing is sent then
   * @throws LockLostError when it is gone
   * @throws LockUnavailableError when the store did not answer; the lease is as it was
   * @throws LockAbortedError when the signal aborts; nothing is sent where it has aborted before
   */
  extend(leaseTime: Duration, options?: AnswerOptions): Promise<void>;

  /** @throws LockLostError when it is not held any more */
  assertHeld(): void;

  /**
   * Gives the lease to another process, which goes on with it by {@link LockService.resume}: the lock is not free between. The
   * ticket is a text for a message, a job or a header. It is worth the lease, so it has to be kept as secret as the work. It
   * is good for `within`, and for one process.
   *
   * This process holds nothing afterwards, whatever the answer of the store is: the lease has ended as by a release, and its
   * signal does not abort. A `minHoldTime` that is not over goes with the ticket.
   * @throws LockConfigError when the lease shares its hold with another one, as a nested acquisition does; for one side of a
   * read-write lock whose other side this process has, too; for a multi-lock; on `nodes`. The lease is as it was
   * @throws LockLostError when it is gone
   * @throws LockUnavailableError when the store did not answer in time; the lock is given up then
   */
  handOver(options?: HandOverOptions): Promise<string>;

  /**
   * Gives it up. May be called again, and after a loss; never throws because the lease had already ended. A signal, also one
   * that has aborted before, ends only the wait for the answer: the lock is released all the same.
   * @throws LockAbortedError when the signal aborts before the store has answered
   */
  release(options?: AnswerOptions): Promise<void>;
}
