import { type LockUnavailableError } from '../../api/errors.js';
import { isLockUnavailableError } from '../../api/error-guards.js';
import { isWorthAnotherTry } from '../../store/another-try.js';
import type { AcquireReply, AcquireRequest, NextOwner, ReleaseRequest } from '../../store/lock-store.js';
import type { QueueMessage, Rivals } from '../../store/queue-messages.js';
import { doubtOf } from '../../store/unconfirmed.js';
import { Alarm } from './alarm.js';
import type { Grant, LockTerms, Refusal, Sent } from './request.js';
import { now } from '../holding/deadline.js';
import type { LocalQueue } from './local-queue.js';
import type { Tenure } from '../holding/tenure.js';
import { backoff, type Busy, busyWith, isRefusal, refusedWith } from './waiting.js';

export type AcquisitionMessage = Exclude<QueueMessage, { readonly type: 'lost' | 'asked' }>;

/**
 * The acquisition of a lock by one owner, from its first request until the lock is granted or no caller wants it any
 * more. Repeats its request at the moments that the store names, or sooner after a message.
 */
export abstract class Acquisition {
  protected readonly alarm: Alarm;
  readonly createdAt: number;
  /** The owner under which the client finds the acquisition for messages. */
  protected key: string;
  /** Most acquisitions are granted at once, and need no messages. */
  private isFound = false;
  protected owner: string;
  /** The requested lease, ms. */
  protected lease: number;
  private sent: Sent | undefined;
  /** Whether the owner may have an entry in the store queue. */
  protected stands = false;
  /** The last message of the store that the turn has come, unless a later answer denies it. */
  protected handedOver:
    { readonly at: number; readonly isClaim: boolean; readonly rivals: Rivals | undefined } | undefined;
  /** Whether a request of this owner got no answer, so that it may arrive after later requests. */
  protected doubtful = false;
  /** The hold in the way by the last answer of the store; undefined before the first answer. */
  protected refusal: { readonly holder: string | undefined; readonly until: number } | undefined;
  private failure: LockUnavailableError | undefined;
  private outcome: Tenure | 'left' | undefined;

  constructor(protected readonly queue: LocalQueue) {
    const { client } = queue;
    this.alarm = new Alarm(client.setTimer);
    this.createdAt = now();
    this.key = this.owner = client.nextOwner();
    this.lease = queue.wantedLease ?? 0;
  }

  /** For a command that also releases another owner. */
  get nextOwner(): NextOwner {
    return { owner: this.owner, leaseTime: this.lease };
  }

  /** The hold in the way, or the reason for the missing answer. */
  get obstacle(): Busy | LockUnavailableError {
    const { failure, refusal } = this;
    return failure ?? busyWith(refusal?.holder, refusal && refusal.until - now());
  }

  /** The begin of the store's silence; undefined if it has answered. */
  get silentSince(): number | undefined {
    const isUnheard = this.refusal === undefined && this.failure === undefined;
    return this.sent?.askedAt ?? (isUnheard ? this.createdAt : undefined);
  }

  /**
   * Repeats requests until the acquisition ends.
   * @param joint a request that has been sent together with a release
   * @param after ms to wait before the first request, unless a release message arrives
   */
  async start(joint?: Sent, after = 0): Promise<void> {
    // The first request leaves in the turn of its caller.
    if (after > 0 || (joint === undefined && this.queue.needsMessages)) await this.prepare(after);
    for (let failures = 0; joint !== undefined || this.isOpen; joint = undefined) {
      const sent = (this.sent = joint ?? this.ask());
      // A store of the application may run code that makes the callers leave before the store takes the request.
      if (this.outcome === 'left') this.giveUp();
      const reply = await sent.reply;
      // Cleared only after the answer: until then, an acquisition that leaves must release the possible grant.
      this.sent = undefined;
      if (this.isAnsweredLate(sent, reply)) return;
      if (reply instanceof Error || !reply.granted) this.beFound();
      let lookAt: number;
      if (reply instanceof Error) lookAt = this.failed(sent.askedAt, reply, failures++);
      else {
        failures = 0;
        lookAt = reply.granted ? this.granted(sent, reply) : this.busy(sent, reply);
      }
      // 0 is at once, whatever a message has said about the request before.
      if (this.outcome === undefined && lookAt > 0) await this.alarm.sleepUntil(lookAt);
    }
  }

  /** Asks at once, or as soon as the request under way is answered. */
  lookAgain(): void {
    this.alarm.ring();
  }

  /** Releases the possible hold and entry of the owner before the caller is told that it has left. */
  leave(mayHaveIt = this.mayHaveIt): void {
    if (!this.isOpen) return;
    this.outcome = 'left';
    if (mayHaveIt) this.giveUp();
    this.end();
  }

  abstract onMessage(message: AcquisitionMessage): void;

  /** Sends the next request. */
  protected abstract ask(): Sent;

  /** @returns the moment of the next request, as do the methods that follow */
  protected abstract granted(sent: Sent, grant: Grant): number;

  /** The moment of the next request, if callers still want the lock. */
  protected abstract whileBusy(sent: Sent, refusal: Refusal): number;

  /** The release that answers a message after the end of the acquisition. */
  protected departed(): ReleaseRequest | undefined {
    return undefined;
  }

  protected async prepare(after: number): Promise<void> {
    if (after > 0) await this.alarm.sleepUntil(now() + after);
  }

  protected get isOpen(): boolean {
    return this.outcome === undefined;
  }

  /** Whether the owner has, or may get, the lock or an entry. */
  protected get mayHaveIt(): boolean {
    return this.doubtful || this.sent !== undefined;
  }

  protected get terms(): LockTerms {
    return this.queue.terms;
  }

  protected send(request: AcquireRequest, takesEntry = false): Sent {
    this.alarm.reset();
    return this.queue.send(request, takesEntry);
  }

  protected get releaseRequest(): ReleaseRequest {
    const { owner, lease: leaseTime, terms } = this;
    return { name: terms.name, owner, leaseTime, queue: terms.queue };
  }

  /** @param until the moment at which the store has certainly forgotten the hold and the entry of the owner */
  protected giveUp(until = now() + this.lease, entryUntil = until): void {
    const { releaser } = this.queue.client;
    void releaser.release(this.releaseRequest, until, { insist: this.doubtful, entryUntil });
  }

  /** False if the first waiter wants another lease time, because the caller of the request has left. */
  protected take(grantedAt: number, fencingToken: number, rivals: Rivals | undefined): boolean {
    const { queue, owner, lease: leaseTime, stands: stood, doubtful } = this;
    const handedOver = this.handedOver !== undefined;
    const { wantedLease } = queue;
    if (wantedLease === undefined) this.leave(true);
    else if (wantedLease !== leaseTime) return false;
    if (!this.isOpen) return true;
    // Field by field, because a spread is slow and every acquisition passes here.
    const origin = {
      owner,
      fencingToken,
      grantedAt,
      leaseTime,
      queue: this.terms.queue,
      stood,
      handedOver,
      rivals,
      doubtful,
    };
    this.outcome = queue.granted(origin) ?? 'left';
    this.end();
    return true;
  }

  protected failed(askedAt: number, error: Error, failures: number): number {
    if (failures === 0 && isWorthAnotherTry(error)) return 0;
    const isFinal = !isLockUnavailableError(error) || error.permanent;
    if (isLockUnavailableError(error) && !isFinal) this.failure = error;
    this.queue.failed(askedAt, error, isFinal);
    return isFinal ? 0 : now() + backoff(failures);
  }

  /** Subscribes, and asks once more when the subscription is active, because the release may have come before that. */
  protected listen(wasSubscribed: boolean): void {
    if (!wasSubscribed) this.askOnce(this.queue.subscribe());
  }

  /** Does not wait for the subscription: a new caller may want its answer sooner. */
  protected askOnce(subscribed: Promise<boolean>): void {
    void subscribed.then((isSubscribed) => {
      if (isSubscribed) this.lookAgain();
    });
  }

  private busy(sent: Sent, refusal: Refusal): number {
    const { retryAfter, holder } = refusal;
    const doubt = (this.failure = doubtOf(refusal));
    const until = retryAfter < Infinity ? now() + retryAfter : (this.refusal?.until ?? -Infinity);
    this.refusal = { holder, until };
    if (doubt === undefined) this.queue.refused(sent.askedAt, refusedWith(refusal));
    else this.queue.failed(sent.askedAt, doubt, false);
    const { client, name } = this.queue;
    if (holder !== undefined) client.acquisitions.releaseAgain(name, holder, sent.askedAt);
    if (!this.isOpen) return 0;
    if (this.queue.wait) client.acquisitions.waits();
    return this.whileBusy(sent, refusal);
  }

  /**
   * Whether the acquisition ended before the answer came; then its release, or the granted hold, is the answer. A
   * request without an answer may still arrive after that release.
   */
  private isAnsweredLate({ isJoint }: Sent, reply: AcquireReply | Error): boolean {
    const isLost = reply instanceof Error && !isRefusal(reply);
    this.doubtful ||= isLost;
    const { outcome } = this;
    if (outcome === undefined) return false;
    if (outcome === 'left') {
      if (isLost || isJoint) this.giveUp();
    } else if (isLost) {
      if (outcome.held) outcome.doubtful = true;
      else this.giveUp();
    }
    return true;
  }

  /** Lets messages reach the acquisition. */
  protected beFound(): void {
    if (this.isFound) return;
    this.isFound = true;
    this.queue.client.acquisitions.add(this.key, this.queue);
  }

  /** Ends the record of the acquisition, or of its present owner. */
  protected beForgotten(departed: ReleaseRequest | undefined): void {
    if (this.isFound) this.queue.client.acquisitions.remove(this.key, departed);
    this.isFound = false;
  }

  private end(): void {
    const { queue } = this;
    this.beForgotten(this.outcome === 'left' ? this.departed() : undefined);
    queue.acquisitionOver(this);
    this.alarm.ring();
  }
}
