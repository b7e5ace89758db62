import type { LossReason } from './errors.js';

/** The tracing channels of node:diagnostics_channel on which locks are published. */
export const TRACING_CHANNELS = Object.freeze({
  /** One context for each call of `acquire`, `tryAcquire` or `using`. */
  acquire: 'nestjs-distributed-lock:acquire',
  /** One context for each hold of a lock, from its grant to its release or loss. */
  hold: 'nestjs-distributed-lock:hold',
});

/** The lock of an acquisition or a hold. */
export interface LockTraceContext {
  /** The lock's name. It may name a user or an order: a series or a span per name is rarely wanted. For a multi-lock, all. */
  readonly name: string;
  /** The group of the lock: its template, or the option `label`, else the kind. */
  readonly label: string;
  readonly kind: 'lock' | 'fair' | 'read' | 'write' | 'semaphore' | 'multi';
  /** The name of the LockService; undefined for the unnamed one. */
  readonly instance: string | undefined;
  /** The id of the LockService: its owners are called `<client>:<n>`. */
  readonly client: string;
}

/**
 * How an acquisition has ended: by a grant of the store, a hand-off of this process, a nested acquisition; busy after the wait
 * time or at once; aborted by its signal; no answer of the store; the service is closed; nested in a lost hold; or refused,
 * because it was asked for wrongly.
 */
export type AcquireOutcome =
  | 'granted'
  | 'handed-off'
  | 're-entered'
  | 'busy'
  | 'aborted'
  | 'unavailable'
  | 'closed'
  | 'lost'
  | 'refused';

/** The context of the channel `nestjs-distributed-lock:acquire`. Optional fields are set from `asyncStart` on. */
export interface LockAcquireContext extends LockTraceContext {
  outcome?: AcquireOutcome;
  /** With `busy`: `timeout`, `queue-full` or `deadlock`. With `lost`: why. */
  reason?: 'timeout' | 'queue-full' | 'deadlock' | LossReason;
  /** ms from the call to its end */
  waited?: number;
  fencingToken?: number;
  /** The owner that was last in the way while the caller waited, as far as this process knows. */
  holder?: string;
  /** How many times this process asked the store for the lock during the call. Callers that wait together share it. */
  attempts: number;
  /** Requests to the store during the call: the attempts, and looks at a hold of this process. Subscriptions do not count. */
  commands: number;
  /** The lease, or null if `tryAcquire` found it busy; set by Node, and removed when the last subscriber has been told. */
  result?: unknown;
  /** Set by Node. */
  error?: unknown;
}

/**
 * The context of the channel `nestjs-distributed-lock:hold`. `start` and `end` come with the grant, `asyncStart` and
 * `asyncEnd` with the release or the loss, `error` with a loss.
 */
export interface LockHoldContext extends LockTraceContext {
  readonly owner: string;
  readonly fencingToken: number;
  /** It came directly from another holder: of this process, or of another one by a message of the store. */
  readonly handedOver: 'local' | 'fleet' | undefined;
  /** The watchdog renews it. Otherwise it is a fixed lease, whose end its caller has chosen. */
  readonly renewed: boolean;
  /** The call that it is the answer to, or a part of it; undefined if that call is not traced. */
  readonly acquisition: LockAcquireContext | undefined;
  outcome?: 'released' | 'lost';
  /** With `lost`. */
  reason?: LossReason;
  /** ms */
  heldFor?: number;
  /** LockLostError */
  error?: unknown;
}

/** Receives the steps of an acquisition while it is traced. */
export interface AcquisitionObserver {
  readonly context: LockAcquireContext;
  /** The caller waits, or has waited, for this owner; undefined if it is not known. */
  waitsFor(holder: string | undefined): void;
  /** One of the locks that were asked for is held now. */
  entered(how: 'granted' | 'handed-off' | 're-entered'): void;
  /** The caller was not let into the queue. `tryAcquire` does not get the error that tells it. */
  foundFull(): void;
  /** The store was asked so often while the caller waited. */
  asked(attempts: number, commands: number): void;
}
