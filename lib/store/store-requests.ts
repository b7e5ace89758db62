import type { Rivals } from './queue-messages.js';

/** A request of one owner for one lock. */
export interface AcquireRequest {
  readonly name: string;
  readonly owner: string;
  /** ms. The same at every attempt of an owner that has an entry in a store queue. */
  readonly leaseTime: number;
  /** Without it the request is for a plain lock, and the waiters take no entry in its store queue. */
  readonly queue?: QueueRequest | undefined;
  /** The lowest token that may be granted. */
  readonly leastToken?: number | undefined;
}

/** A request of one owner for several plain locks. */
export interface AcquireAllRequest {
  /** No name twice. */
  readonly names: readonly string[];
  readonly owner: string;
  /** ms */
  readonly leaseTime: number;
  /** The lowest token that may be granted. */
  readonly leastToken?: number | undefined;
}

/**
 * The terms of a request to a store with queues: how many owners may hold the lock at once, and whether this owner wants
 * it alone. A plain lock (`lock`) is always held alone. An owner that finds it free takes it, even if other owners
 * have entries in its store queue. The release of its holder hands it over to the next entry.
 */
export interface QueueTerms {
  readonly kind: 'lock' | 'fair' | 'read-write' | 'semaphore';
  readonly mode: 'exclusive' | 'shared';
  /** How many owners may share the lock. */
  readonly capacity: number;
}

export interface QueueRequest extends QueueTerms {
  /**
   * Takes an entry in the store queue when the lock is busy: at the end, or at the `arrival` that the store has named
   * before. Without it the owner only asks.
   */
  readonly entry: { readonly arrival: number | undefined } | undefined;
  /** The owner of the own write hold: an exclusive hold, beside which this owner may share the lock. */
  readonly ownWriteHold: string | undefined;
}

/** Another owner that takes an entry at the end of a store queue. */
export interface NextOwner {
  readonly owner: string;
  /** ms */
  readonly leaseTime: number;
}

/** The outcome of both steps of a hand-over request. */
export interface HandOverReply {
  readonly released: ReleaseReply;
  /** The answer that an acquisition of the next owner would have got. */
  readonly next: AcquireReply;
}

/** Granted with a token, or busy, with the time until the hold in the way ends. */
export type AcquireReply =
  | {
      readonly granted: true;
      readonly fencingToken: number;
      readonly rivals?: Rivals | undefined;
    }
  | {
      readonly granted: false;
      /** ms until the present hold ends by itself; Infinity when it has no end. */
      readonly retryAfter: number;
      readonly holder: string | undefined;
      /** The arrival of the owner's entry in the store queue. The owner names it when it asks again. */
      readonly arrival?: number | undefined;
      /**
       * The store says this to the first of the queue only. With a `holder`: the hold in the way is that of another library,
       * which hands nothing over, so that only {@link LockStore.subscribeToReleases} reports its release. Without a
       * `holder`: the lock is left to the waiters outside of the queue for `retryAfter` ms.
       */
      readonly listen?: boolean | undefined;
      /**
       * No owner is known to have the lock, though it could not be granted: of several nodes, each owner that asks at this moment has
       * got a part. So a caller that does not wait asks again in a moment, a few times.
       */
      readonly undecided?: boolean | undefined;
    };

/** All locks are granted, or none is. */
export type AcquireAllReply =
  | {
      readonly granted: true;
      /** In the order of the names. */
      readonly fencingTokens: readonly number[];
    }
  | {
      readonly granted: false;
      /** One lock that is in the way. The other fields describe that lock. */
      readonly name: string;
      readonly retryAfter: number;
      readonly holder: string | undefined;
      /** As for one lock. */
      readonly undecided?: boolean | undefined;
    };

/** A request to make a hold last longer. */
export interface RenewRequest {
  readonly name: string;
  readonly owner: string;
  /** ms; 0 only asks whether the owner still holds the lock. */
  readonly leaseTime: number;
}

/**
 * Whether the owner still holds the lock, or why it does not: another owner holds it (`taken`), or none does (`deleted`).
 */
export type HoldState = 'held' | 'taken' | 'deleted';

/**
 * Whether the owner gave the lock up now, or how it had lost the lock before. If several owners may share a lock, the
 * holders that would have let the owner in do not count as another owner.
 */
export type ReleaseReply = 'released' | Exclude<HoldState, 'held'>;

/** A request to give up a hold or an entry in a store queue. */
export interface ReleaseRequest {
  readonly name: string;
  readonly owner: string;
  /** The last token given out under this hold. Hand-offs, which the store never sees, may have increased it. */
  readonly fencingToken?: number | undefined;
  /** ms for which the lock stays taken without an owner, instead of being free at once. */
  readonly keepFor?: number | undefined;
  /**
   * The lease that the owner has asked for, ms. To be given with a `queue` if the owner may have an entry: a store need not
   * find the entry of a plain lock without it.
   */
  readonly leaseTime?: number | undefined;
  /** Gives up an entry in the store queue, too. */
  readonly queue?: QueueTerms | undefined;
}

/** A request to pass the hold of one owner on to another one. */
export interface TransferRequest {
  readonly name: string;
  /** The owner that holds the lock. */
  readonly owner: string;
  /** The owner that holds it afterwards. */
  readonly next: string;
  /** ms from now until the hold of the next owner ends, which may be sooner than that of the present one. */
  readonly leaseTime: number;
  /** The lowest token that may be given. */
  readonly leastToken: number;
  /** The terms under which the owner holds the lock, if the store has queues. */
  readonly queue?: QueueTerms | undefined;
}

/** The next owner holds the lock, under a token of its own; or none of the two holds it, and nothing has changed. */
export type TransferReply =
  | {
      readonly granted: true;
      readonly fencingToken: number;
      /** The time of day by the clock of the store, ms. */
      readonly date: number;
    }
  | {
      readonly granted: false;
      readonly state: Exclude<HoldState, 'held'>;
      readonly date: number;
    };

/** The messages of the store arrive until it is closed. */
export interface Subscription {
  /** False while messages may be missed. A waiter then polls instead of trusting them. */
  readonly active: boolean;
  close(): void;
}

/** One holder of a lock. */
export interface StoredHold {
  readonly owner: string;
  /** ms; Infinity when the hold has no end. */
  readonly remainingTime: number;
  /** Wall-clock ms of the acquisition; undefined if the store does not know it. */
  readonly since: number | undefined;
  readonly mode: 'exclusive' | 'shared';
}

/** A lock that an owner holds or waits for. */
export interface StoredLock {
  readonly holders: readonly StoredHold[];
  readonly kind: QueueTerms['kind'];
  /** The entries of the store queue, in its order: for a plain lock one entry per process. */
  readonly queue: readonly {
    readonly owner: string;
    readonly mode: 'exclusive' | 'shared';
    /** Wall-clock ms */
    readonly since: number;
    /** True if the store knows that the client of the entry has no subscription: it takes such a client for dead. */
    readonly dead?: boolean | undefined;
  }[];
  readonly fencingToken: number | undefined;
  /** How many subscriptions to the releases of a plain lock there are. */
  readonly listeners: number;
}
