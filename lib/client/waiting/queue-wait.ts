import { random } from '../../runtime/runtime.js';
import type { ReleaseRequest } from '../../store/lock-store.js';
import { CLAIM, QUEUE_ENTRY_LIFE, type Rivals } from '../../store/queue-messages.js';
import { isGrantedInVain } from '../../store/unconfirmed.js';
import {
  Acquisition,
  type AcquisitionMessage,
  type Grant,
  type Refusal,
  requestFor,
  type Sent,
} from './acquisition.js';
import { deadlineOf, driftOf, now } from '../holding/deadline.js';
import { GRACE, POLL, tooLate } from './waiting.js';

/**
 * An acquisition on a store with queues. Its owner has an entry in the store queue, and the store tells it when its turn has
 * come. The owner also asks by itself at the time that the store has named, because a message may be lost. A repeated
 * request of the same owner changes nothing.
 */
export class QueueWait extends Acquisition {
  /** It may have an entry in the store queue. */
  private stands = false;
  private arrival: number | undefined;
  /** A hold that was granted for the lease time of a caller that has left, and that the store may still keep. */
  private kept: { readonly until: number; readonly token: number } | undefined;
  /** The store has told it that its turn has come, and no answer since then says otherwise. */
  private handedOver: { readonly at: number; readonly rivals: Rivals | undefined } | undefined;
  /** From this moment on, the store grants only a claim by a message; see CLAIM. */
  private claimsFrom = Infinity;
  /** The store has been asked since `claimsFrom`, so no message of a whole lease can have been lost. */
  private asked = false;

  override start(first?: Sent, after = 0): Promise<void> {
    this.stands = first?.takesEntry === true;
    return super.start(first, after);
  }

  onMessage(message: AcquisitionMessage): void {
    if (message.type === 'missed') {
      this.lookAgain();
    } else if (message.type === 'granted') {
      const isClaim = message.leaseTime < this.lease;
      const { grantedAt, fencingToken, rivals } = message;
      // A claim that has ended has left the lock free, or to another owner.
      const isLate = now() >= deadlineOf(grantedAt, Math.min(CLAIM, this.lease));
      this.handedOver = isLate ? undefined : { at: now(), rivals };
      // A new request turns a hold that still exists into a whole lease. The callers are told only then.
      if (isClaim || isLate || !this.enter({ grantedAt, fencingToken, rivals })) this.lookAgain();
    } else {
      if (message.listen === true) this.queue.leftToOthers();
      this.alarm.set(message.listen === true ? now() + message.within : this.after(message.within));
    }
  }

  /**
   * If the order of the callers is promised, the client subscribes before it asks: a request before that is a wasted command
   * if the lock is busy. But it gets its answer within the time that a caller leaves for one.
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
    // An owner with an entry keeps its lease time: the entry stores it.
    if (!this.stands) this.lease = queue.wantedLease ?? this.lease;
    // An owner with an entry keeps it. An entry that is forgotten in the queue would be granted the lock without a caller.
    const takesEntry = (queue.wait || this.stands) && queue.client.queueMessages.isSubscribed;
    this.stands ||= takesEntry;
    const request = requestFor(terms, owner, this.lease, takesEntry ? { arrival: this.arrival } : undefined);
    return this.send(this.isKept ? { ...request, shortens: this.kept?.token } : request, takesEntry);
  }

  protected granted({ askedAt }: Sent, { fencingToken, rivals }: Grant): number {
    if (now() < deadlineOf(askedAt, this.lease)) {
      this.enter({ grantedAt: askedAt, fencingToken, rivals: rivals ?? this.handedOver?.rivals });
      return 0;
    }
    // An answer that comes after its own deadline counts as no answer. The owner asks again, and gets a valid one.
    this.stands = true;
    this.failed(askedAt, tooLate(this.terms.name), 0);
    return 0;
  }

  protected whileBusy({ askedAt, takesEntry, wasSubscribed }: Sent, refusal: Refusal): number {
    const { queue } = this;
    const { retryAfter, holder, arrival, listen } = refusal;
    if (this.handedOver !== undefined && askedAt >= this.handedOver.at) this.handedOver = undefined;
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
    // Polls until the subscription is active, because it may have failed.
    return listen === true && !wasSubscribed ? now() + Math.min(retryAfter, POLL) : this.after(retryAfter);
  }

  protected override failed(askedAt: number, error: Error, failures: number): number {
    if (isGrantedInVain(error)) this.beginAnew();
    return super.failed(askedAt, error, failures);
  }

  /** A replica that takes over may not know that the owner has left, and grant to it. */
  protected departed(): ReleaseRequest {
    return this.releaseRequest;
  }

  protected override get mayHaveIt(): boolean {
    return this.stands || this.isKept || super.mayHaveIt;
  }

  protected override giveUp(): void {
    const until = Math.max(now() + this.lease, this.kept?.until ?? -Infinity);
    const { until: blockedUntil = -Infinity } = this.refusal ?? {};
    super.giveUp(until, this.stands ? Math.max(until, blockedUntil) + this.lease + QUEUE_ENTRY_LIFE : until);
  }

  private get isKept(): boolean {
    return this.kept !== undefined && now() < this.kept.until;
  }

  /** As `take`. A hold of another lease time is kept, and the next request of the owner shortens it. */
  private enter(grant: {
    readonly grantedAt: number;
    readonly fencingToken: number;
    readonly rivals: Rivals | undefined;
  }): boolean {
    const { stands: stood, kept } = this;
    const handedOver = this.handedOver !== undefined;
    // If the store has lost the token of a hold that was kept, that hold has not become shorter.
    if (this.take({ ...grant, stood, handedOver, keptUntil: kept?.until })) return true;
    this.stands = false;
    this.kept = { until: now() + this.lease, token: grant.fencingToken };
    return false;
  }

  /**
   * The store has granted the lock, and the grant does not count. The owner would stay the holder until its next request, and
   * keep out waiters that the store could serve. So it leaves, and another owner asks, behind those that wait already.
   */
  private beginAnew(): void {
    this.giveUp();
    const { client } = this.queue;
    client.acquisitions.remove(this.key, this.departed());
    this.key = this.owner = client.nextOwner();
    this.stands = this.doubtful = this.asked = false;
    this.arrival = this.handedOver = this.kept = this.refusal = undefined;
    this.claimsFrom = Infinity;
    client.acquisitions.add(this.key, this.queue);
  }

  /** When to look again. The holder may hold for long, and the message of its release may be lost. */
  private after(time: number): number {
    const { leaseTime } = this.queue.client;
    // The store sends the head of the queue no message about a hold that lasts as long as the head's own lease would,
    // unless that hold is a claim.
    const untold = this.queue.isByArrival ? Infinity : Math.max(this.lease, CLAIM);
    // The 1 ms and the random part keep waiters from looking before the end that the store has named, and from looking all
    // at once.
    const moment = now() + Math.min(time, leaseTime, untold) + 1 + random() * 20;
    return this.asked ? moment : Math.min(moment, this.claimsFrom);
  }
}
