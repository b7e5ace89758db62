import { random } from '../../runtime/runtime.js';
import {
  Acquisition,
  type Grant,
  isGrantedInTime,
  type Refusal,
  requestFor,
  type Sent,
} from './acquisition.js';
import { now } from '../holding/deadline.js';
import { POLL, tooLate } from './waiting.js';

/**
 * An acquisition on a store without queues. Each release wakes it, and it asks with a new owner every time: the release of a
 * request that got no answer may arrive late.
 */
export class AskAndListen extends Acquisition {
  private isUsed = false;

  override start(first?: Sent, after = 0): Promise<void> {
    this.isUsed = first !== undefined;
    return super.start(first, after);
  }

  onMessage(): void {
    this.lookAgain();
  }

  protected ask(): Sent {
    const { queue, terms } = this;
    this.lease = queue.wantedLease ?? this.lease;
    if (this.isUsed) this.owner = queue.client.nextOwner();
    this.isUsed = true;
    this.doubtful = false;
    return this.send(requestFor(terms, this.owner, this.lease));
  }

  protected granted(sent: Sent, reply: Grant): number {
    const { askedAt } = sent;
    const isInTime = isGrantedInTime(sent, reply);
    if (isInTime && this.take({ grantedAt: askedAt, fencingToken: reply.fencingToken, rivals: reply.rivals }))
      return 0;
    // Another owner asks next, and has to wait until this hold is taken back.
    this.giveUp();
    // An answer that comes after its own deadline counts as no answer.
    return isInTime ? 0 : this.failed(askedAt, tooLate(this.terms.name), 0);
  }

  protected whileBusy({ wasSubscribed }: Sent, { retryAfter }: Refusal): number {
    this.listen(wasSubscribed);
    // A hold without an end is also looked at, once per lease time: it may end without a message. Polls until the
    // subscription is active, because it may have failed.
    const sleep = Math.min(retryAfter, wasSubscribed ? this.queue.client.leaseTime : POLL);
    // Keeps the processes that wait for one lock from asking all at once when the hold ends.
    return now() + sleep + 1 + random() * Math.min(sleep / 10, 50);
  }

  protected override failed(askedAt: number, error: Error, failures: number): number {
    // The request may have been carried out, or may still be carried out. It is taken back before a caller is told of the
    // failure.
    if (this.doubtful) this.giveUp();
    return super.failed(askedAt, error, failures);
  }

  /** No message is addressed to its owners. */
  protected departed(): undefined {
    return undefined;
  }
}
