import type { LockEvent } from '../../api/events.js';
import type { AcquireReply, HandOverReply, ReleaseReply, ReleaseRequest } from '../../store/lock-store.js';
import { promiseOf } from '../../runtime/thrown.js';
import { now } from '../holding/deadline.js';
import type { LockClient } from '../lock-client.js';
import type { Tenure } from '../holding/tenure.js';

/**
 * ms. A store keeps the token of a hold at least for its lease. After a longer lease than this, the release carries the
 * token, and the store keeps it for a time that does not depend on the lease.
 */
const LONG_LEASE = 3_600_000;

/** Releases the holds of this process in the store. */
export class Returns {
  /** Losses by the end of a fixed lease, which the caller chose. */
  readonly ranOut = new WeakSet<LockEvent>();

  constructor(
    private readonly client: Pick<
      LockClient,
      'releaser' | 'labels' | 'events' | 'initialLease' | 'acquisitions'
    >,
  ) {}

  /**
   * @param send used instead of a plain release
   * @returns as Releaser.release
   */
  giveBack(
    tenure: Tenure,
    send?: (request: ReleaseRequest) => Promise<ReleaseReply>,
  ): Promise<ReleaseReply | undefined> {
    const { name, owner, label, terms, doubtful, keptAtMostUntil } = tenure;
    const { labels, releaser, events, acquisitions } = this.client;
    const until = Math.max(now() + terms.leaseTime, keptAtMostUntil);
    const request = this.requestOf(tenure);
    if (request.keepFor !== undefined) labels.keep(request.keepFor);
    const released = releaser.release(request, until, {
      insist: doubtful,
      send,
      onFailure: (error) => {
        events.next({ type: 'release-failed', name, label, owner, error });
      },
    });
    acquisitions.departed(request);
    tenure.end();
    return released;
  }

  /** As `giveBack`, in one command that also gives another owner an entry. */
  passOn(
    tenure: Tenure,
    handOver: (request: ReleaseRequest) => Promise<HandOverReply>,
  ): {
    readonly released: Promise<ReleaseReply | undefined>;
    readonly next: Promise<AcquireReply | undefined>;
  } {
    let released: Promise<ReleaseReply | undefined> | undefined;
    const answer = new Promise<AcquireReply | undefined>((resolve, reject) => {
      released = this.giveBack(tenure, async (request) => {
        const reply = promiseOf(() => handOver(request));
        // A store of the application may answer with nothing.
        reply.then((both: HandOverReply | undefined) => {
          resolve(both?.next);
        }, reject);
        return (await reply).released;
      });
    });
    return { released: Promise.resolve(released), next: answer };
  }

  /** The release of a tenure. Every way to release keeps the holder's `minHoldTime`. */
  requestOf(tenure: Tenure): ReleaseRequest {
    // Field by field, because a spread is slow and every release passes here.
    const { name, owner, terms, queue, handoffs, keepFor } = tenure;
    const fencingToken = handoffs > 0 || tenure.longest > LONG_LEASE ? tenure.fencingToken : undefined;
    return { name, owner, leaseTime: this.client.initialLease(terms), queue, fencingToken, keepFor };
  }

  /**
   * Ends a tenure that no caller uses yet. If the store has granted two holds that exclude each other, one of them is
   * gone. Answers may arrive in another order than the grants, so the hold with the greater token is the later grant.
   * If the store has lost its tokens and its clock was set back, the former hold is the one that is gone, so the store
   * is asked about it.
   */
  turnDown(tenure: Tenure): void {
    const { name, owner, terms, fencingToken, queue } = tenure;
    const { leaseTime } = terms;
    tenure.lose('taken');
    void this.client.releaser.release({ name, owner, leaseTime, fencingToken, queue }, now() + leaseTime);
  }

  /** Reports a lost tenure, and releases the rest that the store may still have. */
  lost(tenure: Tenure): void {
    const { name, owner, label, terms, loss, fencingToken, queue, keptUntil, doubtful } = tenure;
    const isPlain = queue === undefined || queue.kind === 'lock';
    const reason = loss?.reason ?? 'expired';
    const event: LockEvent = { type: 'lost', name, label, owner, reason, forced: loss?.forced };
    if (tenure.ranOut) this.ranOut.add(event);
    // A loss before the holder begins concerns no holder: the caller waits again, gets an error, or learns of it when
    // it begins.
    if (tenure.user !== undefined) this.client.events.next(event);
    // The store may still have the hold, or restore it with a renewal under way. A fixed lease of a plain lock ends
    // there by itself.
    const request = { ...this.requestOf(tenure), fencingToken };
    this.client.acquisitions.departed(request);
    const endsByItself = !terms.renewed && isPlain && keptUntil < now();
    const gone = endsByItself || reason === 'taken' || reason === 'deleted';
    if (!gone || doubtful) {
      const until = Math.max(now() + terms.leaseTime, keptUntil);
      void this.client.releaser.release(request, until, { insist: doubtful });
    }
  }
}
