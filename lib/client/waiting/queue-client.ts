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
  /** The lease time of the module, ms. No waiter relies on a message for longer. */
  readonly leaseTime: number;
  /** The subscription to messages about acquisitions. */
  readonly queueMessages: Messages;
  readonly setTimer: typeof timerAt;
  readonly acquisitions: Acquisitions;
  /** Delivers a release to the store. No waiter needs the answer. */
  readonly releaser: { release(...given: Parameters<Releaser['release']>): void };
  nextOwner(): string;
  /** Length of the first lease, ms. */
  initialLease(terms: LeaseTerms): number;
  /** Asks the store about a hold, and ends the hold if it is gone. Rejects if the store did not answer. */
  look(tenure: Tenure): Promise<void>;
  /** Sends the release, then ends the tenure, so that the request of the next caller follows the release. */
  giveBack(tenure: Tenure): Promise<ReleaseReply | undefined>;
  open(queue: LocalQueue, terms: LeaseTerms, origin: TenureOrigin): Tenure;
  /** Called when a holder begins. */
  begin(tenure: Tenure): Tenure;
  /** As `giveBack`, in one command that also gives another owner an entry. Undefined if the store cannot do that. */
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
