import type { AcquireReply, LockStore, NextOwner, ReleaseReply } from '../../store/lock-store.js';
import type { Releaser } from '../../store/releaser.js';
import type { Acquisitions } from './acquisitions.js';
import type { timerAt } from '../holding/deadline.js';
import type { LocalQueue } from './local-queue.js';
import type { Messages } from './message-subscription.js';
import type { LeaseTerms, Tenure, TenureOrigin } from '../holding/tenure.js';

/** The part of a client that its local queues use. */
export interface QueueClient {
  readonly store: Pick<LockStore, 'acquire' | 'subscribeToReleases'>;
  readonly localHandoff: number;
  /** The lease time of the module, ms. No caller waits for a message for longer. */
  readonly leaseTime: number;
  /** The subscription to the messages about acquisitions. */
  readonly queueMessages: Messages;
  readonly setTimer: typeof timerAt;
  readonly acquisitions: Acquisitions;
  /** Makes sure that the store gets a release. No waiter needs the answer. */
  readonly releaser: { release(...given: Parameters<Releaser['release']>): void };
  nextOwner(): string;
  /** The lease to ask the store for, ms. */
  initialLease(terms: LeaseTerms): number;
  /** Asks the store about a hold, and ends one that is gone. Rejects when the store did not answer. */
  look(tenure: Tenure): Promise<void>;
  /** Sends the release, then ends the tenure, so that a request of the next caller is sent after the release. */
  giveBack(tenure: Tenure): Promise<ReleaseReply | undefined>;
  open(queue: LocalQueue, terms: LeaseTerms, origin: TenureOrigin): Tenure;
  /** A holder begins. */
  begin(tenure: Tenure): Tenure;
  /** As `giveBack`, and in the same step another owner takes an entry. Undefined if the store cannot do that. */
  readonly passOn:
    | ((
        tenure: Tenure,
        next: NextOwner,
      ) => {
        readonly released: Promise<ReleaseReply | undefined>;
        readonly next: Promise<AcquireReply | undefined>;
      })
    | undefined;
}
