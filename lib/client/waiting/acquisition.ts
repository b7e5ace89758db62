import { isLockUnavailableError, type LockUnavailableError } from '../../api/errors.js';
import { isWorthAnotherTry } from '../../store/another-try.js';
import type {
  AcquireReply,
  AcquireRequest,
  LockStore,
  NextOwner,
  QueueRequest,
  QueueTerms,
  ReleaseRequest,
} from '../../store/lock-store.js';
import type { QueueMessage } from '../../store/queue-messages.js';
import { doubtOf } from '../../store/unconfirmed.js';
import { Alarm } from './alarm.js';
import { deadlineOf, now } from '../holding/deadline.js';
import type { LocalQueue } from './local-queue.js';
import type { Tenure, TenureOrigin } from '../holding/tenure.js';
import { asError, backoff, type Busy, busyWith, isRefusal, refusedWith } from './waiting.js';

/** The lock that a request is for. */
export interface LockTerms {
  readonly name: string;
  /** Undefined on a store without queues. */
  readonly queue: QueueTerms | undefined;
  /** The owner of this scope's own write hold, beside which the scope may read. */
  readonly ownWriteHold: string | undefined;
}

/** A message about an acquisition. */
export type AcquisitionMessage = Exclude<QueueMessage, { readonly type: 'lost' | 'asked' }>;

export type Grant = Extract<AcquireReply, { granted: true }>;
export type Refusal = Extract<AcquireReply, { granted: false }>;

/** A request for a lock that has been sent. */
export interface Sent {
  readonly owner: string;
  /** ms */
  readonly leaseTime: number;
  readonly askedAt: number;
  /** The request takes an entry in the store queue if the lock is busy. */
  readonly takesEntry: boolean;
  /** The subscription to releases was already active when the request was sent, so no later release can be missed. */
  readonly wasSubscribed: boolean;
  /** It went together with the release of another owner, so the release of its own owner may have overtaken it. */
  readonly isJoint: boolean;
  /** Never rejects. */
  readonly reply: Promise<AcquireReply | Error>;
}

/** @param entry of an owner that takes an entry in the store queue if the lock is busy */
export function requestFor(
  { name, queue, ownWriteHold }: LockTerms,
  owner: string,
  leaseTime: number,
  entry?: QueueRequest['entry'],
): AcquireRequest {
  if (queue === undefined) return { name, owner, leaseTime };
  const { kind, mode, capacity } = queue;
  return { name, owner, leaseTime, queue: { kind, mode, capacity, entry, ownWriteHold } };
}

/** Asks the store. Never rejects: a store of the application may throw, and need not be of TypeScript. */
export async function answerOf(
  store: Pick<LockStore, 'acquire'>,
  request: AcquireRequest,
): Promise<AcquireReply | Error> {
  try {
    return asReply(await store.acquire(request));
  } catch (error) {
    return asError(error);
  }
}

export function asReply(answer: AcquireReply | null | undefined): AcquireReply | Error {
  if (typeof answer?.granted === 'boolean') return answer;
  return new TypeError('the store answers an acquisition with something else than whether it is granted');
}

/** Whether the store has granted a request, and its answer has come before the end of that lease. */
export const isGrantedInTime = ({ askedAt, leaseTime }: Sent, reply: AcquireReply | Error): reply is Grant =>
  !(reply instanceof Error) && reply.granted && now() < deadlineOf(askedAt, leaseTime);

/**
 * One owner's way to a lock of any kind, from the first answer that is no grant until the lock is granted, or no caller
 * wants it any more. It repeats its request at the moments that the store names, and sooner if a message says so.
 */
export abstract class Acquisition {
  protected readonly alarm: Alarm;
  readonly createdAt: number;
  /** The owner under which the client finds it. */
  protected key: string;
  protected owner: string;
  /** The lease time that is asked for, ms. */
  protected lease: number;
  /** The request that is under way. */
  private sent: Sent | undefined;
  /** A request of this owner got no answer, so it may arrive later than the requests after it. */
  protected doubtful = false;
  /** The hold in the way, as the store has last said; undefined until its first answer. */
  protected refusal: { readonly holder: string | undefined; readonly until: number } | undefined;
  private failure: LockUnavailableError | undefined;
  private outcome: Tenure | 'left' | undefined;

  /** @param first a request that was sent before there was an acquisition */
  constructor(
    protected readonly queue: LocalQueue,
    first: Sent | undefined,
  ) {
    const { client } = queue;
    this.alarm = new Alarm(client.setTimer);
    this.createdAt = first?.askedAt ?? now();
    this.key = this.owner = first?.owner ?? client.nextOwner();
    this.lease = first?.leaseTime ?? queue.wantedLease ?? 0;
    client.acquisitions.add(this.key, queue);
  }

  /** For a request that goes together with the release of another owner. */
  get nextOwner(): NextOwner {
    return { owner: this.owner, leaseTime: this.lease };
  }

  /** The hold in the way, or the reason why the store has not answered. */
  get obstacle(): Busy | LockUnavailableError {
    const { failure, refusal } = this;
    return failure ?? busyWith(refusal?.holder, refusal && refusal.until - now());
  }

  /** Since when the store has not answered; undefined while it has. */
  get silentSince(): number | undefined {
    const isUnheard = this.refusal === undefined && this.failure === undefined;
    return this.sent?.askedAt ?? (isUnheard ? this.createdAt : undefined);
  }

  /**
   * Asks, and waits, until the acquisition has ended.
   * @param first a request that has been sent already
   * @param after ms to wait first, unless a release message arrives
   */
  async start(first?: Sent, after = 0): Promise<void> {
    if (first === undefined) await this.prepare(after);
    for (let failures = 0; first !== undefined || this.isOpen; first = undefined) {
      const sent = (this.sent = first ?? this.ask());
      // A store of the application may have run code that made the callers leave, before it took the request.
      if (this.outcome === 'left') this.giveUp();
      const reply = await sent.reply;
      // Not before the answer is read: an acquisition that leaves meanwhile has to give up what the request may have got.
      this.sent = undefined;
      if (this.isAnsweredLate(sent, reply)) return;
      let lookAt: number;
      if (reply instanceof Error) lookAt = this.failed(sent.askedAt, reply, failures++);
      else {
        failures = 0;
        lookAt = reply.granted ? this.granted(sent, reply) : this.busy(sent, reply);
      }
      if (this.outcome === undefined) await this.alarm.sleepUntil(lookAt);
    }
  }

  /** Asks at once, or as soon as the request under way has its answer. */
  lookAgain(): void {
    this.alarm.ring();
  }

  /** Gives up whatever the owner may have got, before a caller is told that it has left. */
  leave(mayHaveIt = this.mayHaveIt): void {
    if (!this.isOpen) return;
    this.outcome = 'left';
    if (mayHaveIt) this.giveUp();
    this.end();
  }

  abstract onMessage(message: AcquisitionMessage): void;

  /** The request with which it asks now. */
  protected abstract ask(): Sent;

  /** @returns when to ask again; the same in the methods that follow */
  protected abstract granted(sent: Sent, grant: Grant): number;

  /** When to ask again, if the callers still want the lock. */
  protected abstract whileBusy(sent: Sent, refusal: Refusal): number;

  /** The record that is left for a message that comes after the end. */
  protected abstract departed(): ReleaseRequest | undefined;

  protected async prepare(after: number): Promise<void> {
    if (after > 0) await this.alarm.sleepUntil(now() + after);
  }

  protected get isOpen(): boolean {
    return this.outcome === undefined;
  }

  /** Whether the owner may have the lock or an entry, or get it. */
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

  /** @param until when the store has forgotten the hold and the entry of the owner in any case */
  protected giveUp(until = now() + this.lease, entryUntil = until): void {
    const { releaser } = this.queue.client;
    releaser.release(this.releaseRequest, until, { insist: this.doubtful, entryUntil });
  }

  /** False if the next caller wants another lease time: the caller that wanted this one has left. */
  protected take(grant: Omit<TenureOrigin, 'owner' | 'leaseTime' | 'queue' | 'doubtful'>): boolean {
    const { queue, owner, lease: leaseTime, doubtful } = this;
    const { wantedLease } = queue;
    if (wantedLease === undefined) this.leave(true);
    else if (wantedLease !== leaseTime) return false;
    if (!this.isOpen) return true;
    this.outcome = queue.granted({ ...grant, owner, leaseTime, doubtful, queue: this.terms.queue }) ?? 'left';
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

  /**
   * The release may have come between the request and the subscription, so the owner asks once more as soon as the
   * subscription is active.
   */
  protected listen(wasSubscribed: boolean): void {
    if (!wasSubscribed) this.askOnce(this.queue.subscribe());
  }

  /** Nothing waits for the subscription itself: a caller that comes meanwhile may want its answer sooner. */
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
    if (!this.isOpen) return 0;
    if (this.queue.wait) this.queue.client.acquisitions.waits();
    return this.whileBusy(sent, refusal);
  }

  /**
   * Whether the acquisition had ended before the answer came. The release that has been sent, or the hold that was granted,
   * is the answer then. But a request without an answer may arrive after that release.
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

  private end(): void {
    const { queue, key } = this;
    queue.client.acquisitions.remove(key, this.outcome === 'left' ? this.departed() : undefined);
    queue.acquisitionOver(this);
    this.alarm.ring();
  }
}
