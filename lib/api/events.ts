import type { Asker } from './asker.js';
import type { DeadlockStep } from './deadlock.js';
import type { LockError, LossReason } from './errors.js';
import type { LockOrderStep } from './lock-order.js';

/**
 * What happens to the locks of one LockService. `name` is the lock's name as the caller gave it. `label` is its group: the
 * option `label`, the template of a decorator, or the kind.
 */
export type LockEvent =
  | {
      readonly type: 'acquired';
      readonly name: string;
      readonly label: string;
      readonly owner: string;
      readonly fencingToken: number;
      /** ms between the request and the lease */
      readonly waited: number;
      /** It came from another holder of this process, without a command to the store. */
      readonly handedOff: boolean;
    }
  | {
      /**
       * The lock went to this holder without being free between: from another holder of this process, or from another process
       * by a message of the store. Follows `acquired`.
       */
      readonly type: 'handed-over';
      readonly name: string;
      readonly label: string;
      readonly owner: string;
      readonly fencingToken: number;
      readonly by: 'local' | 'fleet';
    }
  | {
      /** A caller has not got the lock: LockTimeoutError, or null from a `tryAcquire` that has waited. */
      readonly type: 'timed-out';
      readonly name: string;
      readonly label: string;
      /** ms */
      readonly waited: number;
      /** `queue-full`: as many callers as `maxWaiting` waited already. `deadlock`: the event of that name tells more. */
      readonly reason: 'timeout' | 'queue-full' | 'deadlock';
      /** The owner that has it, as far as it is known, and what its process is called. */
      readonly holder: string | undefined;
      readonly holderLabel: string | undefined;
    }
  | {
      /** A caller has waited for `longWaitTime` and goes on waiting. Sent once for each call. */
      readonly type: 'waiting-long';
      readonly name: string;
      readonly label: string;
      /** ms */
      readonly waited: number;
      /** The owner that has it, as far as it is known, and what its process is called. */
      readonly holder: string | undefined;
      readonly holderLabel: string | undefined;
    }
  | {
      /** A lock has been held for `longHoldTime` and still is. Sent once for each hold. */
      readonly type: 'held-long';
      readonly name: string;
      readonly label: string;
      readonly owner: string;
      /** ms */
      readonly heldFor: number;
    }
  | {
      /**
       * Locks were taken in two orders, so that two callers can wait for each other. Sent once for each pair of labels, before
       * a caller waits. `name` and `label` are of the lock that is asked for.
       */
      readonly type: 'lock-order';
      readonly name: string;
      readonly label: string;
      /** The lock under which it is asked for. */
      readonly heldName: string;
      /** The lock of the present call, and its place. */
      readonly step: LockOrderStep;
      /** The ways from it to the lock that is held, as they were first seen. Empty if both locks have one label. */
      readonly former: readonly LockOrderStep[];
    }
  | {
      /**
       * A caller of this process and others wait for each other. Each of them is told, once. `name` and `label` are of the lock
       * that it waits for.
       */
      readonly type: 'deadlock';
      readonly name: string;
      readonly label: string;
      /** All callers, this one first. */
      readonly cycle: readonly DeadlockStep[];
      /** This caller ends with LockTimeoutError and the reason `deadlock`, so that the others go on. */
      readonly broken: boolean;
    }
  | {
      /**
       * A lease that has entered the one of a callback is held longer than that one. No nested call does this that its
       * callback waits for. The work of another request may, which a shared queue, pool or batch has started in the async
       * context of the holder: two callers are inside. Sent once for each lease. `label` and `at` are of the lease that is
       * still held.
       */
      readonly type: 'outlived';
      readonly name: string;
      readonly label: string;
      readonly owner: string;
      /** File, line and column of the call that has entered the other lease, if they are known. */
      readonly at: string | undefined;
      /** The same of the lease that has ended. */
      readonly outerLabel: string;
      readonly outerAt: string | undefined;
    }
  | {
      /**
       * The lease of `acquire`, `tryAcquire` or `resume` was garbage-collected without a release: no code is left that could
       * release it. The lock stays held, and is renewed. Sent once for each lease, when the collector finds it.
       */
      readonly type: 'abandoned';
      readonly name: string;
      readonly label: string;
      readonly owner: string;
      /** ms */
      readonly heldFor: number;
      /** File, line and column of the call that has acquired it, if they are known. */
      readonly at: string | undefined;
    }
  | {
      readonly type: 'released';
      readonly name: string;
      readonly label: string;
      readonly owner: string;
      /** ms */
      readonly heldFor: number;
    }
  | {
      /** The lease ended before its release: the guarded work may run twice now. */
      readonly type: 'lost';
      readonly name: string;
      readonly label: string;
      readonly owner: string;
      readonly reason: LossReason;
      /** The service that has taken it by force, if a message said so. */
      readonly forced?: Asker | undefined;
    }
  | {
      /**
       * A holder of this service is asked to release its lock; see `Lease.releaseRequested`. The lease stays as it is. Sent
       * for each request and each of the holders that it asks, such as the readers of a read lock.
       */
      readonly type: 'release-requested';
      readonly name: string;
      readonly label: string;
      readonly owner: string;
      /** The same for all holders that one request asks. */
      readonly request: string;
      /** How many holds of this lock this service has. */
      readonly holders: number;
      /** The `label` of the service that asks. */
      readonly by: string;
      readonly reason: string | undefined;
    }
  | {
      /** This service has asked the holders of a lock to release it. */
      readonly type: 'release-request-sent';
      readonly name: string;
      /** How many were asked. */
      readonly holders: number;
      readonly reason: string | undefined;
    }
  | {
      /** This service has taken a lock away from its holders. */
      readonly type: 'force-released';
      readonly name: string;
      readonly reason: string | undefined;
    }
  | {
      /** The watchdog could not renew these, and tries again until their deadlines. Sent once per outage. */
      readonly type: 'renewal-failed';
      readonly names: readonly string[];
      /** Of each name, in the same order. */
      readonly labels: readonly string[];
      readonly error: unknown;
    }
  | {
      /** A release got no answer. It is repeated in the background until the lease has run out. */
      readonly type: 'release-failed';
      readonly name: string;
      readonly label: string;
      readonly owner: string;
      readonly error: LockError;
    }
  | {
      /**
       * The store is set up in a way that can cost a lock. Sent once for each code and node. Or a locked method is
       * probably wrong: sent once at boot.
       */
      readonly type: 'warning';
      /** `eviction-policy`, `replica`, `same-server`, `command-timeout`, `lock-inside-transaction`… */
      readonly code: string;
      /** The server; empty if the warning is of no server. */
      readonly node: string;
      /** The fault, its consequence and the cure. */
      readonly message: string;
    }
  | {
      /** If a server ends an idle connection, only a failure to connect again is reported. */
      readonly type: 'disconnected' | 'reconnected';
      /** The server: host and port. */
      readonly node: string;
      readonly error?: unknown;
    };
