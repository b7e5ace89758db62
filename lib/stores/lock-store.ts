/**
 * The port between locks and the place where they live. A store knows names and owners, and nothing of leases,
 * scopes or Nest. Every operation is idempotent, because a reply can be lost after the command was carried out:
 * an acquisition by the owner that already holds succeeds, a release of what is not held changes nothing.
 *
 * An operation that gets no clear answer rejects with LockUnavailableError and says in `effect` whether it may have
 * been carried out. A name that holds something else rejects with LockKindMismatchError and changes nothing.
 */
export interface LockStore {
  /** Why it has no queues, which fair locks, read-write locks and semaphores need; undefined where it has them. */
  readonly noQueues?: string | undefined;

  /** Takes the lock for `owner`, or says that somebody else has it. Never waits for the lock. */
  acquire(request: AcquireRequest): Promise<AcquireReply>;

  /**
   * Takes several plain locks for one owner in one step: all of them, or none. Only for names of one place; see
   * {@link locationOf}.
   */
  acquireAll(request: AcquireAllRequest): Promise<AcquireAllReply>;

  /** Where a lock lives. Names of one place can be taken in one step. */
  locationOf(name: string): string;

  /**
   * Which server answers for a lock, so that one which does not answer holds up no other's renewals. It has no bearing
   * on anything else.
   * @default the same for all
   */
  nodeOf?(name: string): string;

  /**
   * Makes each hold last `leaseTime` from now; never shortens one, so that with 0 it only tells the state. One promise per
   * hold, so that a node that does not answer delays nobody else's.
   */
  renew(holds: readonly RenewRequest[]): readonly Promise<HoldState>[];

  /** Gives the lock up and wakes who waits. Where the owner did not hold it, says who does: another, or nobody. */
  release(request: ReleaseRequest): Promise<ReleaseReply>;

  /**
   * Gives a plain lock up, and takes a place at the end of its queue for another owner, in one step: for the next caller of
   * the client that held it. Without it the client does one after the other.
   */
  readonly handOver?: ((request: ReleaseRequest, next: NextOwner) => Promise<HandOverReply>) | undefined;

  /**
   * Calls `onWake` when the lock may have become free, and when wake-ups may have been missed (a connection was
   * lost or came back). Resolves once the subscription is certain.
   */
  subscribeToReleases(name: string, onWake: () => void): Promise<Subscription>;

  /**
   * Hears what the store tells one client about its places in queues and its holds; see {@link QueueMessage}. The client
   * does not stand in a queue before this has resolved: who is not heard of is taken for dead.
   */
  subscribeToQueue(client: string, onMessage: (message: QueueMessage) => void): Promise<Subscription>;

  /** What the store knows of the lock; null when nobody holds it. */
  inspect(name: string): Promise<StoredLock | null>;

  /**
   * Takes the lock away from its holders, tells their clients and wakes who waits. False when nobody held it.
   * @param mode only from the holders on this side of a read-write lock; a plain lock is on neither. Default all
   */
  forceRelease(name: string, mode?: QueueTerms['mode']): Promise<boolean>;

  /**
   * How each node is doing, and what that means for the whole. Never rejects: a node that does not answer is `down`.
   * @param depth `look`: asks only, for a look in the background. `try`: finds out whether a lock can be taken now, at
   * best by taking one that no caller can name. @default 'try'
   */
  health(depth?: HealthDepth): Promise<StoreHealth>;

  /** Tells when a node stops or starts answering, the first time included. */
  onConnectionChange(listener: (change: ConnectionChange) => void): void;

  /** Gives up subscriptions and the connections that the store opened itself. */
  close(): Promise<void>;
}

/**
 * No name contains it. A store may keep what belongs to a lock under keys that do, and no other lock's key is one.
 * It does not overlap itself.
 */
export const RESERVED = '~ndl:';

/** One owner wants one lock. */
export interface AcquireRequest {
  readonly name: string;
  readonly owner: string;
  /** ms. The same at every attempt of an owner that stands in a queue. */
  readonly leaseTime: number;
  /** Without it a plain lock is asked for, whose waiters do not stand in a queue. */
  readonly queue?: QueueRequest | undefined;
  /** The least token to give. */
  readonly leastToken?: number | undefined;
}

/** One owner wants several plain locks. */
export interface AcquireAllRequest {
  /** No name twice. */
  readonly names: readonly string[];
  readonly owner: string;
  /** ms */
  readonly leaseTime: number;
  /** The least token to give. */
  readonly leastToken?: number | undefined;
}

/**
 * What is asked for where there are queues: how many may hold it at once, and whether this one wants it alone. A plain lock
 * (`lock`) is wanted alone. Who finds it free takes it, whoever stands in its queue; who holds it hands it to the next.
 */
export interface QueueTerms {
  readonly kind: 'lock' | 'fair' | 'read-write' | 'semaphore';
  readonly mode: 'exclusive' | 'shared';
  /** How many may share it. */
  readonly capacity: number;
}

export interface QueueRequest extends QueueTerms {
  /** Stands in the queue when it is busy: at the end, or again where the store has said before; else it only asks. */
  readonly entry: { readonly arrival: number | undefined } | undefined;
  /** The owner's other hold of the lock, an exclusive one, beside which it may share. */
  readonly ownWriteHold: string | undefined;
}

/** Another owner that takes a place at the end of a queue. */
export interface NextOwner {
  readonly owner: string;
  /** ms */
  readonly leaseTime: number;
}

/** What has become of both. */
export interface HandOverReply {
  readonly released: ReleaseReply;
  /** As the next owner's acquisition would have been answered. */
  readonly next: AcquireReply;
}

/** What the store tells a client whose owners stand in queues, or hold locks of any kind. */
export type QueueMessage =
  | {
      /** A hold of this owner has been taken away by force. A hint, which may be late: the client asks the store. */
      readonly type: 'lost';
      readonly owner: string;
    }
  | {
      /** The owner holds the lock now. */
      readonly type: 'granted';
      readonly owner: string;
      readonly fencingToken: number;
      /** On this process's monotonic clock, and not later than it was. */
      readonly grantedAt: number;
      /**
       * ms: the lease that the owner has asked for, where it has arrived within the last second; else a claim, of
       * a second at most. A client that is granted less than it has asked for acquires again before the
       * caller hears of it, which makes the claim a whole lease.
       */
      readonly leaseTime: number;
      readonly rivals?: Rivals | undefined;
    }
  | {
      /**
       * The owner should look again after so many ms if it has not heard anything. It is the next; or a claim is in the
       * way, and both the claim's owner and the next may be dead. While a claim is in the way, a store tells waiters further
       * back as well, so that dead ones in a row cost one claim each.
       */
      readonly type: 'next';
      readonly owner: string;
      readonly within: number;
      /** The lock is left for so long to who does not stand in the queue: see `listen` of {@link AcquireReply}. */
      readonly listen?: boolean | undefined;
    }
  | {
      /** Messages may have been missed, or there is something that no message can say: the owner should look again. */
      readonly type: 'missed';
      /** @default every owner */
      readonly owner?: string;
    };

/**
 * How long a hold lasts that the store has granted to a waiter by a message and the waiter has not confirmed, ms. A waiter
 * that has arrived within this time gets its whole lease at once. It asks again when this time since its arrival is over:
 * no other process would notice that the message of a whole lease was lost.
 */
export const CLAIM = 1_000;

/**
 * How long a store may keep a place in a queue after the end of the hold that was in its way, and one lease, ms. A waiter
 * that leaves while the store cannot be reached repeats for so long that it has left.
 */
export const QUEUE_ENTRY_LIFE = 3_600_000;

/**
 * Who else waits for a lock in the moment of its grant, where that is known: others in the queue, or also such as do not stand
 * there, like clients of Redisson. A client that shares a plain lock among its callers leaves it to them sooner.
 */
export type Rivals = 'none' | 'queued' | 'outside';

/** Granted with a token, or busy, and until when. */
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
      /** The place in the queue, to be named when asking again. */
      readonly arrival?: number | undefined;
      /**
       * The hold in the way is that of another library, which hands nothing over: the release is heard only by `subscribe`. Said
       * to the first in the queue.
       */
      readonly listen?: boolean | undefined;
    };

/** All are granted, or none is. */
export type AcquireAllReply =
  | {
      readonly granted: true;
      /** In the order of the names. */
      readonly fencingTokens: readonly number[];
    }
  | {
      readonly granted: false;
      /** One that is in the way; the other fields are its own. */
      readonly name: string;
      readonly retryAfter: number;
      readonly holder: string | undefined;
    };

/** A hold that is to last longer. */
export interface RenewRequest {
  readonly name: string;
  readonly owner: string;
  /** ms; 0 only asks whether it is still held. */
  readonly leaseTime: number;
}

/** Whether the owner still holds the lock, or how it is gone: another has it, or nobody. */
export type HoldState = 'held' | 'taken' | 'deleted';

/**
 * Whether the owner gave it up now, or how it had been gone before. Where several may share a lock, the holders that
 * would have let the owner in do not count as another.
 */
export type ReleaseReply = 'released' | Exclude<HoldState, 'held'>;

/** A hold, or a place in a queue, that is given up. */
export interface ReleaseRequest {
  readonly name: string;
  readonly owner: string;
  /** The last token given out under this hold, which may have grown by hand-offs that the store never saw. */
  readonly fencingToken?: number | undefined;
  /** ms for which the lock stays taken, by nobody, instead of being freed at once. */
  readonly keepFor?: number | undefined;
  /** The lease that the owner has asked for, ms. A store may need it to find a place in a queue without a search. */
  readonly leaseTime?: number | undefined;
  /** Gives up a place in the queue, too. */
  readonly queue?: QueueTerms | undefined;
}

/** Messages that are heard until it is closed. */
export interface Subscription {
  /** False while messages may be missed, so that a waiter polls instead of trusting them. */
  readonly active: boolean;
  close(): void;
}

/** One holder of a lock. */
export interface StoredHold {
  readonly owner: string;
  /** ms; Infinity when the hold has no end. */
  readonly remainingTime: number;
  /** Wall-clock ms of the acquisition; undefined where the store does not know. */
  readonly since: number | undefined;
  readonly mode: 'exclusive' | 'shared';
}

/** A lock that somebody holds. */
export interface StoredLock {
  readonly holders: readonly StoredHold[];
  readonly kind: QueueTerms['kind'];
  /** Those who stand in the queue, in its order: of a plain lock one for each process. */
  readonly queue: readonly {
    readonly owner: string;
    readonly mode: 'exclusive' | 'shared';
    /** Wall-clock ms */
    readonly since: number;
  }[];
  readonly fencingToken: number | undefined;
  /** How many listen for the release of a plain lock. */
  readonly listeners: number;
}

/** What each means for locks is said at {@link StoreHealth.status}. */
export type HealthStatus = 'up' | 'degraded' | 'down';

/** How thoroughly a store is asked. */
export type HealthDepth = 'look' | 'try';

/** How a store is doing: all of its nodes together. */
export interface StoreHealth {
  /**
   * `up`: every node does its part. `degraded`: something is missing (a node of several, messages, room for new locks), and
   * the other nodes give out and keep locks. `down`: no lock can be taken or renewed.
   */
  readonly status: HealthStatus;
  readonly nodes: readonly NodeHealth[];
  /** What is set up in a way that can cost a lock, whether or not all is well now. */
  readonly warnings: readonly StoreWarning[];
}

/** How one node is doing. What it does not tell, or may not, is undefined. */
export interface NodeHealth {
  readonly node: string;
  readonly status: HealthStatus;
  /** ms from question to answer; undefined when there was none. */
  readonly latency: number | undefined;
  /** Why it is not `up`. */
  readonly error: string | undefined;
  /** Whether messages from it are heard; waiters poll where they are not. Undefined before the first wait or long hold. */
  readonly subscriber?: boolean | undefined;
  /** Tells two servers apart, and a server from itself after a restart. */
  readonly runId?: string | undefined;
  readonly version?: string | undefined;
  readonly role?: 'master' | 'replica' | undefined;
  readonly replicas?: readonly ReplicaHealth[] | undefined;
  /** ms that its clock is ahead of this process's. Nothing depends on it. */
  readonly clockOffset?: number | undefined;
  /** Its `maxmemory-policy`. */
  readonly evictionPolicy?: string | undefined;
  readonly persistence?: Persistence | undefined;
  /** ms since it was started, in whole seconds. */
  readonly uptime?: number | undefined;
  /** ms for which a quorum does not count its votes yet, because it may have forgotten some in a restart. */
  readonly quarantine?: number | undefined;
}

/** A replica, as its master sees it. */
export interface ReplicaHealth {
  readonly node: string;
  /** It is in step, and not still copying. */
  readonly online: boolean;
  /** ms since it was last heard of, in whole seconds. */
  readonly lag: number | undefined;
  /** Bytes of the replication stream that it has not confirmed. */
  readonly behind: number | undefined;
}

/** What a server keeps through a restart. */
export interface Persistence {
  /** Writes are logged as they happen; without it a restart forgets what came after the last snapshot. */
  readonly appendOnly: boolean;
  /** Wall-clock ms of the last snapshot, or of the start where there was none yet. */
  readonly lastSave: number | undefined;
  /** The last attempt to save failed. */
  readonly failing: boolean;
}

/** Something that is set up in a way that can cost a lock. */
export interface StoreWarning {
  /** `eviction-policy`, `replica`, `same-server`, `command-timeout`… */
  readonly code: string;
  readonly node: string;
  /** What is wrong, what it can lead to, and the cure. */
  readonly message: string;
}

/** A node has stopped or started answering. */
export interface ConnectionChange {
  readonly node: string;
  readonly connected: boolean;
  /** It had not been connected before: no news, but the moment to look at it. */
  readonly first?: boolean | undefined;
  readonly error?: unknown;
}
