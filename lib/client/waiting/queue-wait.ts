import { random } from '../../runtime/runtime.js';
import type { ReleaseRequest } from '../../store/lock-store.js';
import { CLAIM, QUEUE_ENTRY_LIFE } from '../../store/queue-messages.js';
import { isGrantedInVain } from '../../store/unconfirmed.js';
import { Acquisition, type AcquisitionMessage } from './acquisition.js';
import { type Grant, type Refusal, requestFor, type Sent } from './request.js';
import { deadlineOf, driftOf, now } from '../holding/deadline.js';
import type { LocalQueue } from './local-queue.js';
import { GRACE, POLL } from './waiting.js';

/**
 * An acquisition on a store with queues. Its owner has an entry in the store queue, and gets a message at its turn. It
 * also asks at the moments that the store names, because a message may be lost. A repeated request of one owner changes
 * nothing.
 */
export class QueueWait extends Acquisition {
  /** The moment from which the store grants only claims by message; see CLAIM. */
  private claimsFrom = Infinity;
  /** Whether the store was asked after `claimsFrom`, so that no message of a whole lease was lost. */
  private asked = false;

  /** @param arrival the place in the store queue, if it is that of a former owner */
  constructor(
    queue: LocalQueue,
    private arrival?: number,
  ) {
    super(queue);
  }

  override start(joint?: Sent, after = 0): Promise<void> {
    if (joint !== undefined) this.stand();
    return super.start(joint, after);
  }

  onMessage(message: AcquisitionMessage): void {
    if (message.type === 'missed') {
      this.lookAgain();
    } else if (message.type === 'granted') {
      const isClaim = message.leaseTime < this.lease;
      const { grantedAt, fencingToken, rivals } = message;
      // After the end of a claim, the lock is free or has another owner.
      const isLate = now() >= deadlineOf(grantedAt, Math.min(CLAIM, this.lease));
      this.handedOver = isLate ? undefined : { at: now(), isClaim, rivals };
      // A new request turns a claim that still exists into a whole lease. Only then the callers get the lock.
      if (isClaim || isLate || !this.take(grantedAt, fencingToken, rivals)) this.lookAgain();
    } else {
      if (message.listen === true) this.queue.leftToOthers();
      this.alarm.set(message.listen === true ? now() + message.within : this.after(message.within));
    }
  }

  /**
   * If the order of callers is promised, the client subscribes first, because a request without an entry is a wasted
   * command if the lock is busy. It asks without a subscription after a part of the time that a caller leaves for an
   * answer.
   */
  protected override async prepare(after: number): Promise<void> {
    await super.prepare(after);
    if (!this.queue.needsMessages) return;
    void this.queue.client.queueMessages.subscribe().then(() => {
      this.lookAgain();
    });
    await this.alarm.sleepUntil(now() + GRACE / 2);
  }

  protected ask(): Sent {
    const { queue, terms, owner } = this;
    // The entry of the owner stores the lease time, so it must not change, and neither must the lease of a request that
    // may still arrive. A claim has no entry any more, and is shorter than each lease, so it becomes the lease of the
    // caller that is the first now.
    if (!this.doubtful && (!this.stands || this.handedOver?.isClaim === true))
      this.lease = queue.wantedLease ?? this.lease;
    // An owner with an entry keeps it: otherwise the store would grant the lock to a forgotten entry without a caller.
    const takesEntry = (queue.wait || this.stands) && queue.client.queueMessages.isSubscribed;
    if (takesEntry) this.stand();
    const entry = takesEntry ? { arrival: this.arrival } : undefined;
    return this.send(requestFor(terms, owner, this.lease, entry), takesEntry);
  }

  protected granted({ askedAt }: Sent, { fencingToken, rivals }: Grant): number {
    if (!this.take(askedAt, fencingToken, rivals ?? this.handedOver?.rivals)) {
      const { queue } = this;
      // The hold has the lease time of a caller that has left, and the store shortens no hold. An owner for the next caller
      // takes its entry before the release, so that the release finds it at the place of this one.
      if (queue.wait && queue.client.queueMessages.isSubscribed) queue.askAnew(this.arrival);
      this.leave(true);
    }
    return 0;
  }

  protected whileBusy({ askedAt, takesEntry, wasSubscribed }: Sent, refusal: Refusal): number {
    const { queue } = this;
    const { retryAfter, holder, arrival, listen } = refusal;
    if (this.handedOver !== undefined && askedAt >= this.handedOver.at) this.handedOver = undefined;
    // The request may have taken an entry after the end of the claim.
    else if (takesEntry && this.handedOver !== undefined)
      this.handedOver = { ...this.handedOver, isClaim: false };
    this.arrival = arrival ?? this.arrival;
    if (!takesEntry) {
      if (!queue.wait) return 0;
      this.askOnce(queue.client.queueMessages.subscribe());
      return now() + Math.min(retryAfter, POLL);
    }
    if (listen !== true) queue.unsubscribe();
    else if (holder === undefined) queue.leftToOthers();
    else this.listen(wasSubscribed);
    this.claimsFrom = Math.min(this.claimsFrom, now() + CLAIM + driftOf(CLAIM));
    this.asked = askedAt >= this.claimsFrom;
    // The owner polls until the subscription is active, because the subscription may have failed.
    return listen === true && !wasSubscribed ? now() + Math.min(retryAfter, POLL) : this.after(retryAfter);
  }

  protected override failed(askedAt: number, error: Error, failures: number): number {
    if (isGrantedInVain(error)) this.beginAnew();
    return super.failed(askedAt, error, failures);
  }

  /** After a failover, the new primary may not know that the owner has left, and grant the lock to it. */
  protected override departed(): ReleaseRequest {
    return this.releaseRequest;
  }

  protected override get mayHaveIt(): boolean {
    return this.stands || super.mayHaveIt;
  }

  protected override giveUp(): void {
    const until = now() + this.lease;
    const { until: blockedUntil = -Infinity } = this.refusal ?? {};
    super.giveUp(until, this.stands ? Math.max(until, blockedUntil) + this.lease + QUEUE_ENTRY_LIFE : until);
  }

  /**
   * The grant of the store does not count. Its owner would stay the holder until its next request, and block waiters
   * that the store could serve. So it leaves, and another owner asks, behind the present waiters.
   */
  private beginAnew(): void {
    this.giveUp();
    this.beForgotten(this.departed());
    this.key = this.owner = this.queue.client.nextOwner();
    this.stands = this.doubtful = this.asked = false;
    this.arrival = this.handedOver = this.refusal = undefined;
    this.claimsFrom = Infinity;
  }

  /** Before the request for an entry: a message may announce the turn before the answer comes. */
  private stand(): void {
    this.stands = true;
    this.beFound();
  }

  /** The moment of the next request. The holder may hold for long, and the message of its release may be lost. */
  private after(time: number): number {
    const { leaseTime } = this.queue.client.options;
    // The store sends the head no message about a hold that lasts as long as the head's own lease, except about a
    // claim.
    const untold = this.queue.isByArrival ? Infinity : Math.max(this.lease, CLAIM);
    // The extra time keeps waiters from requests before the end of the hold, and its random part from simultaneous
    // requests.
    const moment = now() + Math.min(time, leaseTime, untold) + 1 + random() * 20;
    return this.asked ? moment : Math.min(moment, this.claimsFrom);
  }
}
