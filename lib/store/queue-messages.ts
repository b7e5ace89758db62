import type { Asker } from '../api/asker.js';

export type { Asker } from '../api/asker.js';

/** The messages of the store to a client whose owners have entries in store queues, or hold locks of any kind. */
export type QueueMessage =
  | {
      /** A hold of this owner has been taken away by force. A hint, which may be late: the client asks the store. */
      readonly type: 'lost';
      readonly owner: string;
      /** The client that has taken it. */
      readonly forced?: Asker | undefined;
    }
  | AskedMessage
  | {
      /** The owner holds the lock now. */
      readonly type: 'granted';
      readonly owner: string;
      readonly fencingToken: number;
      /** The time of the grant on this process's monotonic clock, never later than the real one. */
      readonly grantedAt: number;
      /**
       * ms: the lease that the owner has asked for, if it has arrived within the last second; else a claim, of a second
       * at most. A client that is granted less than it has asked for acquires again before its caller runs. That makes the
       * claim a whole lease.
       */
      readonly leaseTime: number;
      readonly rivals?: Rivals | undefined;
    }
  | {
      /**
       * The owner should ask again after `within` ms unless another message comes first. Either it is the next one, or a
       * claim is in the way, and both the owner of the claim and the next one may be dead. While a claim is in the way, a
       * store also tells waiters further back, so that several dead waiters in a row cost one claim each.
       */
      readonly type: 'next';
      readonly owner: string;
      readonly within: number;
      /** For `within` ms the lock is left to the waiters outside of the queue: see `listen` of `AcquireReply`. */
      readonly listen?: boolean | undefined;
    }
  | {
      /** Messages may have been missed, or no message can describe the change: the owner should ask again. */
      readonly type: 'missed';
      /** @default every owner */
      readonly owner?: string;
    };

/** A request to the holder of a lock to release it. */
export interface AskRequest extends Asker {
  /** Tells requests apart. */
  readonly id: string;
  readonly name: string;
  /** The owner that holds the lock. */
  readonly owner: string;
}

/** Another client asks for the owner's lock: see `LockStore.requestRelease`. The same request may come several times. */
export interface AskedMessage extends AskRequest {
  readonly type: 'asked';
}

/** The messages of a store without queues to a client. */
export type LossMessage = Extract<QueueMessage, { readonly type: 'lost' | 'missed' | 'asked' }>;

/**
 * How long a hold lasts that the store has granted to a waiter by a message and that the waiter has not confirmed, ms. A
 * waiter that has arrived within this time gets its whole lease at once. It asks again when this time since its arrival is
 * over, because no other process would notice that the message of a whole lease was lost.
 */
export const CLAIM = 1_000;

/**
 * How long a store may keep an entry after the end of the hold that was in its way, and one lease, ms. A waiter that leaves
 * while the store cannot be reached repeats for this time that it has left.
 */
export const QUEUE_ENTRY_LIFE = 3_600_000;

/**
 * Which other waiters a lock has at the moment of its grant, if that is known: `queued` are waiters with an entry in the
 * store queue, `outside` are also waiters without an entry, like clients of Redisson. A client that shares a plain lock
 * among its callers leaves it to such waiters sooner.
 */
export type Rivals = 'none' | 'queued' | 'outside';
