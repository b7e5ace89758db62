import { type Asker, describeAsker } from './asker.js';
import { type DeadlockStep, describeCycle } from './deadlock.js';
import { describeOption } from './describe.js';
import { inQuotes } from '../runtime/text.js';
import { ExpectedLockError, LockError, type LockErrorStatus } from './lock-error.js';
import { isKept, keeperOf } from './lock-state.js';

export { isLockError, LockError, type LockErrorBody, type LockErrorCode } from './lock-error.js';

/**
 * Every failure has a class of its own. `message` is for logs and job boards. `publicMessage` is for clients of the
 * application: it reveals nothing to a stranger.
 */

/**
 * Another owner still held the lock at the end of the wait time. HTTP 409. With several locks, `key` names the lock that
 * was in the way, and `holder` its holder.
 */
export class LockTimeoutError extends ExpectedLockError {
  readonly code = 'LOCK_TIMEOUT';
  /** How long the caller waited, in ms. */
  readonly waited: number;
  /**
   * The owner that held the lock at the last try, if the store told; `kept:` and the owner, if the lock is kept for the
   * `minHoldTime` of an owner that has released it.
   */
  readonly holder: string | undefined;
  /**
   * `timeout`: the wait time ended. `queue-full`: `maxWaiting` callers of this process waited already. `deadlock`: the
   * caller and others waited for each other, and it began last.
   */
  readonly reason: 'timeout' | 'queue-full' | 'deadlock';
  /**
   * ms that the lease in the way had left at the last try, if that is known. Its holder may renew it, or release it before.
   */
  readonly remainingTime: number | undefined;
  /** The label of the holder's instance, if known: `label` of its module. It is not sent to clients. */
  readonly holderLabel: string | undefined;
  /** With `deadlock`: the callers that waited for each other, this one first. It is not sent to clients. */
  readonly cycle: readonly DeadlockStep[] | undefined;

  constructor(
    key: string,
    waited: number,
    holder?: string,
    reason: LockTimeoutError['reason'] = 'timeout',
    remainingTime?: number,
    holderLabel?: string,
    cycle?: readonly DeadlockStep[],
    /** What else is known of the holder. */
    known?: string,
  ) {
    const instance = holderLabel === undefined ? '' : ` of ${inQuotes(holderLabel)}`;
    const owner = holder === undefined ? 'another owner' : `${inQuotes(keeperOf(holder))}${instance}`;
    const more = known === undefined ? '' : `, ${known}`;
    const isOver = holder !== undefined && isKept(holder);
    const causes = {
      timeout: isOver ? `kept for the minHoldTime of ${owner}` : `held by ${owner}${more}`,
      'queue-full': 'maxWaiting callers wait for it already',
      deadlock: 'deadlock',
    };
    const after = waited > 0 ? ` after a wait of ${String(waited)} ms` : '';
    const cause = cycle === undefined ? causes[reason] : `deadlock, ${describeCycle(cycle)}`;
    super(
      'LOCK_TIMEOUT',
      `The lock "${inQuotes(key)}" is busy${after}: ${cause}`,
      { status: 409, publicMessage: 'The resource is busy, try again later' },
      { key },
    );
    this.waited = waited;
    this.holder = holder;
    this.reason = reason;
    this.remainingTime = remainingTime;
    this.holderLabel = holderLabel;
    this.cycle = cycle;
  }
}

/** What one node of the store answered to a request that failed as a whole. */
export interface NodeOutcome {
  /** Host and port. */
  readonly node: string;
  /**
   * `timeout`: it had not answered when the request ended, or was given up. `quarantined`: it has restarted, and does not
   * vote yet.
   */
  readonly outcome: 'granted' | 'taken' | 'error' | 'timeout' | 'quarantined';
  readonly error?: unknown;
}

/** The store could not answer in time, or refused to. Does not say which owner holds the lock. HTTP 503. */
export class LockUnavailableError extends LockError {
  readonly code = 'LOCK_UNAVAILABLE';
  /**
   * `refused`: the store certainly did not carry the last request out. `unknown`: it may have, so the sender of an
   * acquisition has to take it back. A call may have asked before, and got no answer: that request may have been carried out.
   */
  readonly effect: 'refused' | 'unknown';
  /** True when trying again cannot help, such as a wrong password. */
  readonly permanent: boolean;
  /** What each node said, when the lock lives on several. */
  readonly outcomes: readonly NodeOutcome[];

  constructor(
    key: string | undefined,
    details: {
      cause?: unknown;
      effect?: 'refused' | 'unknown';
      permanent?: boolean;
      outcomes?: readonly NodeOutcome[];
    } = {},
  ) {
    const publicMessage = 'The service is temporarily unavailable, try again later';
    super(publicMessage, { status: 503, publicMessage }, { key, cause: details.cause });
    this.effect = details.effect ?? 'unknown';
    this.permanent = details.permanent ?? false;
    this.outcomes = details.outcomes ?? [];
  }
}

/**
 * Why a lease ended before its release.
 * - `expired`: its time ended, or the process was paused beyond it
 * - `taken`: the store names another owner, or has another value under the name of the lock, which `cause` describes
 * - `deleted`: the store has no such lock any more (deleted by hand, evicted, flushed, failed over)
 * - `unreachable`: the store did not answer a renewal before the deadline
 * - `max-hold`: `maxHoldTime` ended
 * - `released`: its holder has released it, or the application is shutting down
 * - `fenced`: the database has seen a later holder (subpath `fencing`); not in events
 */
export type LossReason = 'expired' | 'taken' | 'deleted' | 'unreachable' | 'max-hold' | 'released' | 'fenced';

const LOSSES: Record<LossReason, string> = {
  expired: 'its time ended',
  taken: 'another owner has it',
  deleted: 'it is gone from the store',
  unreachable: 'the store did not answer a renewal in time',
  'max-hold': 'maxHoldTime ended',
  released: 'it has been released',
  fenced: 'the database has seen a later holder',
};

/** The lease is not held any more, so nothing that it guarded may go on. HTTP 500. */
export class LockLostError extends LockError {
  readonly code = 'LOCK_LOST';
  /** Why it ended. */
  readonly reason: LossReason;
  /** The service that has taken it by {@link LockService.forceRelease}, if a message said so. */
  readonly forced: Asker | undefined;
  /** The owner of the lease. */
  readonly owner: string;
  /**
   * The result of the guarded method, when `onLost: 'throw'` turned its success into this error. Undefined for an
   * Observable, because its values have been passed on already.
   */
  readonly result: unknown;

  constructor(
    key: string,
    details: {
      reason: LossReason;
      owner: string;
      cause?: unknown;
      result?: unknown;
      forced?: Asker | undefined;
    },
  ) {
    const { forced } = details;
    const by = forced === undefined ? '' : `, taken away by ${describeAsker(forced)}`;
    super(
      `The lease on "${inQuotes(key)}" is lost: ${LOSSES[details.reason]} (owner ${details.owner})${by}`,
      { status: 500 },
      { key, cause: details.cause },
    );
    this.reason = details.reason;
    this.owner = details.owner;
    this.result = details.result;
    this.forced = forced;
  }
}

/** The caller's own AbortSignal fired while waiting; `cause` is its reason. HTTP 499, not exposed. */
export class LockAbortedError extends ExpectedLockError {
  readonly code = 'LOCK_ABORTED';

  constructor(key: string, reason: unknown) {
    super(
      'LOCK_ABORTED',
      `Waiting for the lock "${inQuotes(key)}" was aborted by the caller`,
      { status: 499, publicMessage: 'The request was aborted' },
      { key, cause: reason },
    );
  }
}

/**
 * A lock's name, or the template that was to make it, does not give a usable key. HTTP 500, and 400 if the key is made of a
 * request: under {@link LockInterceptor}, and on a handler whose key uses its arguments.
 */
export class LockKeyError extends LockError {
  readonly code = 'LOCK_KEY';

  /** @param http if a request is at fault */
  constructor(message: string, key?: string, cause?: unknown, http: LockErrorStatus = { status: 500 }) {
    super(message, http, { key, cause });
  }
}

/** One name is used as two kinds of lock, or holds a value that is no lock. The store is left as it was. HTTP 500. */
export class LockKindMismatchError extends LockError {
  readonly code = 'LOCK_KIND_MISMATCH';

  constructor(key: string, details: { expected: string; found: string; cause?: unknown }) {
    super(
      `"${inQuotes(key)}" cannot be used as a ${details.expected}: the store holds a ${inQuotes(details.found)} under that name. ` +
        'Give the lock a name of its own, or another keyPrefix.',
      { status: 500 },
      { key, cause: details.cause },
    );
  }
}

/** An option is wrong. Thrown at boot if possible, otherwise at the call, before anything is sent. */
export class LockConfigError extends LockError {
  readonly code = 'LOCK_CONFIG';
  /** Which option. */
  readonly option: string;

  /** @param details `source`: the origin of the option, if the stack does not show it */
  constructor(
    option: string,
    rule: string,
    details: { value?: unknown; key?: string | undefined; source?: string; cause?: unknown } = {},
  ) {
    const { key, source, cause } = details;
    const found = 'value' in details ? ` (found: ${describeOption(details.value)})` : '';
    const given = source === undefined ? '' : `; given by ${source}`;
    super(`${option}: ${rule}${found}${given}`, { status: 500 }, { key, cause });
    this.option = option;
  }
}

/** The application is shutting down, so no new lock is given out. HTTP 503. */
export class LockClosedError extends ExpectedLockError {
  readonly code = 'LOCK_CLOSED';

  constructor(key?: string) {
    const publicMessage = 'The service is shutting down';
    super('LOCK_CLOSED', publicMessage, { status: 503, publicMessage }, { key });
  }
}
