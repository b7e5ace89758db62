import { random } from '../../runtime/runtime.js';
import { Acquisition } from './acquisition.js';
import { type Grant, type Refusal, requestFor, type Sent } from './request.js';
import { now } from '../holding/deadline.js';
import { POLL } from './waiting.js';

/**
 * An acquisition on a store without queues. Each release wakes it. It asks with a new owner every time, because the
 * release of a request without an answer may arrive late.
 */
export class AskAndListen extends Acquisition {
  onMessage(): void {
    this.lookAgain();
  }

  protected ask(): Sent {
    const { queue, terms } = this;
    this.lease = queue.wantedLease ?? this.lease;
    this.owner = queue.client.nextOwner();
    this.doubtful = false;
    return this.send(requestFor(terms, this.owner, this.lease));
  }

  protected granted({ askedAt }: Sent, { fencingToken, rivals }: Grant): number {
    // The next request has another owner, and must wait until this hold is released.
    if (!this.take(askedAt, fencingToken, rivals)) this.giveUp();
    return 0;
  }

  protected whileBusy({ wasSubscribed }: Sent, { retryAfter }: Refusal): number {
    this.listen(wasSubscribed);
    // A hold without an end may end without a message, so the owner asks once per lease time, too. It polls until the
    // subscription is active, because the subscription may have failed.
    const sleep = Math.min(retryAfter, wasSubscribed ? this.queue.client.options.leaseTime : POLL);
    // The random part spreads the requests of the processes that wait for one lock.
    return now() + sleep + 1 + random() * Math.min(sleep / 10, 50);
  }

  protected override failed(askedAt: number, error: Error, failures: number): number {
    // The store may have carried out the request, or may do so later. The release is sent before the caller gets the
    // error.
    if (this.doubtful) this.giveUp();
    return super.failed(askedAt, error, failures);
  }
}
