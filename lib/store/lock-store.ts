import type { Asker } from '../api/asker.js';
import type { LockUnavailableError } from '../api/errors.js';
import type { AskRequest, LossMessage, QueueMessage, Rivals } from './queue-messages.js';
import type { ConnectionChange, HealthDepth, StoreHealth } from './store-health.js';

/**
 * The port between the locks and their location. A store knows names and owners. It knows nothing of leases,
 * scopes or Nest. Every operation is idempotent, because a reply can be lost after the command was carried out: an
 * acquisition by the owner that already holds the lock succeeds, and a release of a lock that is not held changes nothing.
 *
 * An operation that gets no clear answer rejects with LockUnavailableError, and `effect` says whether it may have been
 * carried out. An operation on a name that holds something else rejects with LockKindMismatchError and changes nothing.
 */
export interface LockStore {
  /**
   * The store queues, which fair locks, read-write locks and semaphores need. A store without them leaves this out: no
   * request to it has a `queue`, the waiters of a plain lock race for it, and the other kinds are refused.
   */
  readonly queues?: StoreQueues | undefined;

  /** Why the store has no `queues`, for the error of the kinds that need them. Undefined if it has queues. */
  readonly noQueues?: string | undefined;

  /** For a store that several processes share: what its clients are called. */
  readonly labels?: StoreLabels | undefined;

  /** Notes beside locks that their work is done. A store without them runs nothing once per period. */
  readonly periods?: StorePeriods | undefined;

  /** For a store that several processes share: their waits, so that deadlocks over processes are found. */
  readonly waits?: StoreWaits | undefined;

  /** Names the locks that there are. A store without it cannot list them. */
  readonly listing?: StoreListing | undefined;

  /** How long a hold may last. A store without it gives any. */
  readonly leaseLimit?: LeaseLimit | undefined;

  /** Takes the lock for `owner`, or reports that another owner holds it. Never waits for the lock. */
  acquire(request: AcquireRequest): Promise<AcquireReply>;

  /**
   * Takes several plain locks for one owner in one step: all of them, or none. Only for names of one location; see
   * {@link locationOf}. A hold that the owner has already ends no sooner than before.
   */
  acquireAll(request: AcquireAllRequest): Promise<AcquireAllReply>;

  /** The location of a lock. Names of one location can be taken in one step. */
  locationOf(name: string): string;

  /**
   * Which server answers for a lock, so that a server that does not answer delays no renewals on other servers. It has no
   * other effect.
   * @default the same for all
   */
  nodeOf?(name: string): string;

  /**
   * Why a command on a name cannot be sent now: its connection is known to be down. Undefined while a command may be
   * answered. Sends nothing. A store that does not know leaves this out.
   */
  outageOf?(name: string): LockUnavailableError | undefined;

  /**
   * Makes each hold last `leaseTime` from now. Never shortens a hold, so that a `leaseTime` of 0 only asks for the state.
   * Returns one promise per hold, so that a node that does not answer delays no hold on another node.
   */
  renew(holds: readonly RenewRequest[]): readonly Promise<HoldState>[];

  /**
   * Releases the lock and wakes waiters. If the owner did not hold it, the reply says whether another owner does, or none.
   */
  release(request: ReleaseRequest): Promise<ReleaseReply>;

  /**
   * Runs a function that asks for several operations. They may travel as one command, each with its own answer. A store
   * that gains nothing by it leaves this out.
   */
  together?<R>(run: () => R): R;

  /**
   * Passes the hold of an owner on to another owner in one step, under a greater token: the lock is not free between. No
   * waiter gets a message, except if the hold now ends sooner than the waiters have been told. A request for the owner
   * that got the hold before is granted again, and does not shorten it. A store without this has no leases that travel.
   */
  readonly transfer?: ((request: TransferRequest) => Promise<TransferReply>) | undefined;

  /**
   * Calls `onWake` when the lock may have become free, and when wake-ups may have been missed (a connection was
   * lost or came back). Resolves once the subscription is certain.
   */
  subscribeToReleases(name: string, onWake: () => void): Promise<Subscription>;

  /**
   * For a store without `queues`: tells a client which of its holds have been taken away by force, and which it is asked to
   * release. Without it, the client learns of a loss when it renews.
   */
  subscribeToLosses?(client: string, onMessage: (message: LossMessage) => void): Promise<Subscription>;

  /** The state of the lock. Null when no owner holds it and its store queue is empty. */
  inspect(name: string): Promise<StoredLock | null>;

  /**
   * Takes the lock away from its holders, sends a message to their clients and wakes waiters. False when no owner held it. If
   * it arrives twice, the owner that it has let in keeps the lock.
   * @param mode only from the holders on this side of a read-write lock; a plain lock is on neither side. Default: all
   * @param asker is told to the holders
   */
  forceRelease(name: string, mode?: QueueTerms['mode'], asker?: Asker): Promise<boolean>;

  /**
   * Tells the client of an owner that the lock is wanted, by the message `asked`. Changes nothing. Without it, only
   * holders of the own client are asked.
   * @returns whether the client gets messages now, as far as the store can tell
   */
  readonly requestRelease?: ((request: AskRequest) => Promise<boolean>) | undefined;

  /**
   * The state of each node, and of the whole store. Never rejects: a node that does not answer is `down`.
   * @param depth `look`: only asks the servers, for checks in the background. `try`: finds out whether a lock can be taken
   * now, at best by taking a lock that no caller can name. @default 'try'
   */
  health(depth?: HealthDepth): Promise<StoreHealth>;

  /** Calls the listener when a node stops or starts to answer, the first time included. */
  onConnectionChange(listener: (change: ConnectionChange) => void): void;

  /** Ends the subscriptions and the connections that the store opened itself. */
  close(): Promise<void>;
}

/**
 * The longest hold of a store whose nodes have to know it. A renewed lease that is to be longer takes as much as it may, and
 * the watchdog keeps it up. A hold that has to last for longer is refused.
 */
export interface LeaseLimit {
  /** ms. It only grows, and is 0 until the store knows it. */
  readonly most: number;

  /** Tries to make holds of `leaseTime` possible. @returns the error with which they are refused; undefined if they are not */
  raise(name: string, leaseTime: number): Promise<Error | undefined>;
}

/**
 * The additions of a store with queues to {@link LockStore}. Its `acquire` and `release` take and give up an entry in a
 * store queue if the request has a `queue`.
 */
export interface StoreQueues {
  /**
   * Receives the messages of the store to one client about its entries in store queues and about its holds. The client takes no
   * entry before this has resolved: the store takes a client without a subscription for dead.
   */
  subscribe(client: string, onMessage: (message: QueueMessage) => void): Promise<Subscription>;

  /**
   * Gives a plain lock up, and adds an entry for another owner at the end of its store queue, in one step: for the next
   * caller of the client that held the lock. Without this method, the client sends one request after the other.
   */
  readonly handOver?: ((request: ReleaseRequest, next: NextOwner) => Promise<HandOverReply>) | undefined;
}

/** Tells processes the labels of each other's clients, for error texts and reports. No rule of a lock depends on it. */
export interface StoreLabels {
  /** Keeps the label of a client for `time` ms. */
  keep(client: string, label: string, time: number): Promise<void>;

  /** The label of a client; undefined if none is kept. */
  find(client: string): Promise<string | undefined>;
}

/** Notes beside plain locks when their work was last done. */
export interface StorePeriods {
  /** Makes the note if the owner holds the lock. Otherwise it changes nothing, and says whether another owner holds it. */
  remember(request: RememberRequest): Promise<HoldState>;

  /** ms since the last note, by the clock of the store; undefined if there is none, or its period is over. */
  recall(name: string): Promise<number | undefined>;
}

/** A request to note that the work of a plain lock is done. */
export interface RememberRequest {
  readonly name: string;
  readonly owner: string;
  /** ms for which the note stays. */
  readonly period: number;
}

/**
 * Tells processes the waits of others that hold something. A deadlock over processes that is not found ends with
 * a wait time. No rule of a lock depends on it.
 */
export interface StoreWaits {
  /** Keeps the note of a client for `time` ms, in place of its last one. */
  keep(client: string, note: string, time: number): Promise<void>;

  /** The note of a client; undefined if none is kept. */
  find(client: string): Promise<string | undefined>;

  /** Removes the note of a client. */
  forget(client: string): Promise<void>;
}

/** Names the locks of a store, in steps that do not block it. */
export interface StoreListing {
  /** One step. A name may come in several steps, and need not be the name of a lock. */
  names(request: NamesRequest): Promise<NamesReply>;
}

/** A request for names. */
export interface NamesRequest {
  /** Only names that begin with it. */
  readonly prefix: string;
  /** The `cursor` of the step before; undefined for the first one. */
  readonly cursor: string | undefined;
}

/** The answer of one step. */
export interface NamesReply {
  readonly names: readonly ListedName[];
  /** Undefined after the last step. The step that follows may begin anew, if the one before cannot be gone on with. */
  readonly cursor: string | undefined;
  /** Reads this step again; undefined if the `cursor` that led to it does. */
  readonly step?: string | undefined;
  /** When the reading of the server that names them began, by its clock, ms. */
  readonly begun?: number | undefined;
}

/** A name that a lock may have. */
export interface ListedName {
  readonly name: string;
  /** It is known by its queue. If the lock is held, its holder is listed by itself. */
  readonly isQueue: boolean;
}

/**
 * No lock name contains this text. A store may keep the data that belongs to a lock under keys that contain it, and no such
 * key is the key of another lock. The text does not overlap itself.
 */
export const RESERVED = '~ndl:';

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
