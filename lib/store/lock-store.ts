import type { Asker } from '../api/asker.js';
import type { LockUnavailableError } from '../api/errors.js';
import type { AskRequest, LossMessage, QueueMessage } from './queue-messages.js';
import type { ConnectionChange, HealthDepth, StoreHealth } from './store-health.js';
import type {
  AcquireRequest,
  AcquireAllRequest,
  QueueTerms,
  NextOwner,
  HandOverReply,
  AcquireReply,
  AcquireAllReply,
  RenewRequest,
  HoldState,
  ReleaseReply,
  ReleaseRequest,
  TransferRequest,
  TransferReply,
  Subscription,
  StoredLock,
} from './store-requests.js';

export type * from './store-requests.js';

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
