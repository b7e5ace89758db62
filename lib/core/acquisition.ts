import { isLockUnavailableError, type LockUnavailableError } from '../lock.errors.js';
import { clearTimer, random } from '../lock.runtime.js';
import { isWorthAnotherTry } from '../port/another-try.js';
import type {
  AcquireReply,
  AcquireRequest,
  LockStore,
  QueueTerms,
  ReleaseRequest,
} from '../port/lock-store.js';
import { doubtOf, isGrantedInVain } from '../port/unconfirmed.js';
import { CLAIM, QUEUE_ENTRY_LIFE, type QueueMessage, type Rivals } from '../port/queue-messages.js';
import { deadlineOf, driftOf, now, type timerAt } from './deadline.js';
import type { Messages } from './message-subscription.js';
import { mayFollow, type AcquisitionState } from './acquisition-state.js';
import type { Tenure, TenureOrigin, LeaseTerms } from './tenure.js';
import {
  backoff,
  type Busy,
  busyWith,
  GRACE,
  isRefusal,
  POLL,
  refusedWith,
  tooLate,
  type WaitingContext,
} from './waiting.js';

/** What is asked for. */
export interface LockTerms {
  readonly name: string;
  /** Undefined on a store without queues. */
  readonly queue: QueueTerms | undefined;
  /** The owner of this scope's own write hold, beside which the scope may read. */
  readonly ownWriteHold: string | undefined;
}

/** The callers that an acquisition is for. Once it has no caller left, it is told to leave. */
export interface Callers {
  /** What the next caller wants. There is one until the acquisition is told to leave. */
  readonly next: LeaseTerms | undefined;
  /** Whether some callers wait. Otherwise the store is only asked. */
  readonly wait: boolean;
  /** Whether this process is subscribed to the releases of the lock. That is needed where no queue hands the lock over. */
  readonly isSubscribed: boolean;
  /** @returns whether the subscription to releases is active now */
  subscribe(): Promise<boolean>;
  /** A request for the lock leaves. */
  asked(): void;
  /** The lock is left to other owners for a moment. */
  leftToOthers(): void;
  unsubscribe(): void;
  /** Another owner has the lock. Callers that asked before `askedAt` and do not wait any longer get their answer. */
  refused(askedAt: number, busy: Busy): void;
  /** @param isFinal a second try cannot change it, and callers that asked before `askedAt` get their answer */
  failed(askedAt: number, error: Error, isFinal: boolean): void;
  /** @param isDoubtful a request of this owner may arrive after its release */
  granted(origin: TenureOrigin, isDoubtful: boolean): Tenure | undefined;
}

/** A message about an acquisition. */
export type AcquisitionMessage = Exclude<QueueMessage, { readonly type: 'lost' | 'asked' }>;

export interface AcquisitionContext extends WaitingContext {
  readonly store: Pick<LockStore, 'acquire'>;
  /** The lease time of the module, ms. No caller waits for a message for longer. */
  readonly leaseTime: number;
  /** The subscription to the messages about acquisitions. */
  readonly queueMessages: Messages;
  readonly setTimer: typeof timerAt;
  /** The messages about an entry in the store queue are addressed to its owner. */
  acquisitionBegun(acquisition: Acquisition): void;
  acquisitionOver(acquisition: Acquisition): void;
  /** An acquisition has to wait. */
  acquisitionWaits(): void;
}

/** A request for the lock. */
interface Attempt {
  readonly askedAt: number;
  /** The request takes an entry in the store queue where the lock is busy. */
  readonly takesEntry: boolean;
  /** The subscription to releases was already active when the request was sent, so no later release can be missed. */
  readonly wasSubscribed: boolean;
}

/**
 * One owner's way to a lock of any kind, from the first request until it is granted or no caller wants it any more.
 *
 * Where the store has queues, the owner has an entry in one, and the store tells it when its turn has come. The owner also
 * asks again by itself at the time that the store has named, because a message may be lost. A repeated request of the same
 * owner changes nothing. Where there are no queues, each release wakes the owner, and it asks with a new owner every time:
 * the release of a request that got no answer may arrive late.
 */
export class Acquisition {
  /** Changed only by `become`. */
  private state: AcquisitionState = 'idle';
  /** The owner under which the client knows it. */
  firstOwner: string;
  private currentOwner: string;
  /** A request of this owner has been sent. */
  private isUsed = false;
  /** When the store has told it that its turn has come, and no answer since then says otherwise. */
  private handedOverAt: number | undefined;
  /** Which other waiters the lock had then. The answer that confirms a claim does not say so. */
  private rivals: Rivals | undefined;
  /** The lease time that is asked for, ms. */
  private lease: number;
  private attempt: Attempt | undefined;
  private arrival: number | undefined;
  readonly createdAt = now();
  /** It may have an entry in the store queue. */
  private stands = false;
  /** A request got no answer, so it may arrive later than what was sent after it. */
  private doubtful = false;
  /** Until when the store may keep a hold that was granted for the lease time of a caller that has left. */
  private keptUntil = -Infinity;
  /** The token of that hold. */
  private keptToken: number | undefined;
  /** From this moment on, the store grants only a claim by a message; see CLAIM. */
  private claimsFrom = Infinity;
  /** The store has been asked since `claimsFrom`, so no message of a whole lease can have been lost. */
  private asked = false;
  /** When the hold in the way ends by itself, as the store has last said. */
  private blockedUntil = -Infinity;
  /** The store has answered that another owner has the lock. Until then the holder is unknown. */
  private answered = false;
  private holder: string | undefined;
  private failure: LockUnavailableError | undefined;
  private tenure: Tenure | undefined;
  private lookAt = Infinity;
  private resume: (() => void) | undefined;

  constructor(
    private readonly terms: LockTerms,
    private readonly callers: Callers,
    private readonly context: AcquisitionContext,
    /** Called when the acquisition is granted or left. */
    private readonly onEnd: (acquisition: Acquisition) => void,
  ) {
    this.firstOwner = this.currentOwner = context.nextOwner();
    this.lease = this.wantedLease ?? 0;
  }

  get name(): string {
    return this.terms.name;
  }

  get owner(): string {
    return this.currentOwner;
  }

  get leaseTime(): number {
    return this.lease;
  }

  get isGranted(): boolean {
    return this.state === 'granted';
  }

  /** The request that gives it up. */
  get releaseRequest(): ReleaseRequest {
    return { name: this.name, owner: this.owner, leaseTime: this.lease, queue: this.terms.queue };
  }

  /** The hold in the way, as the store has last said, or the reason why the store has not answered. */
  get obstacle(): Busy | LockUnavailableError {
    return this.failure ?? busyWith(this.holder, this.blockedUntil - now());
  }

  /**
   * The time since which the store has not answered: a request is under way, or what has to be opened before it takes its
   * time.
   */
  get silentSince(): number | undefined {
    const unheard = !this.answered && this.failure === undefined;
    return this.attempt?.askedAt ?? (unheard ? this.createdAt : undefined);
  }

  /**
   * Asks, and waits for the turn, until the acquisition is over.
   * @param sent the answer to a request that was sent with the release of the owner before
   * @param after ms to wait first, unless a release message arrives
   */
  async start(sent?: Promise<AcquireReply>, after = 0): Promise<void> {
    const { queueMessages } = this.context;
    if (after > 0) await this.sleepUntil(now() + after);
    // Where the order of callers is promised, the client subscribes to the queue before it asks. A request before that is a
    // wasted command where the lock is busy. But it gets its answer within the time that a caller leaves for one.
    if (this.byArrival && this.callers.wait && queueMessages.untried) {
      void queueMessages.subscribe().then(() => {
        this.lookAgain();
      });
      await this.sleepUntil(now() + GRACE / 2);
    }
    for (let failures = 0; this.become('asking'); sent = undefined) {
      const attempt = (this.attempt = this.begin(sent !== undefined));
      this.callers.asked();
      let reply: AcquireReply | Error;
      try {
        reply = asReply(await (sent ?? this.context.store.acquire(this.request(attempt))));
      } catch (error) {
        // Also what a store of the application throws in place of rejecting.
        reply = error instanceof Error ? error : new Error(String(error));
      }
      // Not before the answer is read: an acquisition that leaves meanwhile has to give up what the request may have got.
      this.attempt = undefined;
      if (this.isAnsweredLate(reply, sent !== undefined)) return;
      let lookAt: number;
      if (reply instanceof Error) lookAt = this.failed(attempt, reply, failures++);
      else {
        failures = 0;
        lookAt = reply.granted ? this.answeredWith(attempt, reply) : this.busy(attempt, reply);
      }
      if (this.become('standing')) await this.sleepUntil(lookAt);
    }
  }

  onMessage(message: AcquisitionMessage): void {
    if (message.type === 'missed') {
      this.lookAgain();
    } else if (message.type === 'granted') {
      const isClaim = message.leaseTime < this.lease;
      const isLate = now() >= deadlineOf(message.grantedAt, Math.min(CLAIM, this.lease));
      // A claim that is over has left the lock free, or to another owner.
      this.handedOverAt = isLate ? undefined : now();
      this.rivals = isLate ? undefined : message.rivals;
      // A new request turns a hold that still exists into a whole lease. The callers are told only then.
      if (isClaim || isLate || !this.take(message)) this.lookAgain();
    } else {
      if (message.listen === true) this.callers.leftToOthers();
      const moment = message.listen === true ? now() + message.within : this.after(message.within);
      // A look that is due already has another reason, such as a caller that does not wait.
      if (this.lookAt > 0) this.lookAt = moment;
      this.resume?.();
    }
  }

  lookAgain(): void {
    this.lookAt = 0;
    this.resume?.();
  }

  /** Gives up the entry, and the hold if it has just been granted, before a caller is told of it. */
  leave(): void {
    if (!this.become('leaving')) return;
    const mayHaveIt = this.stands || this.doubtful || this.attempt !== undefined;
    if (mayHaveIt || now() < this.keptUntil) this.giveUp();
    this.end();
  }

  /** False where the state may not change because the acquisition is over. */
  private become(next: AcquisitionState): boolean {
    if (!mayFollow(this.state, next)) return false;
    this.state = next;
    return true;
  }

  private get isOver(): boolean {
    return this.state === 'granted' || this.state === 'leaving';
  }

  /** The order of the callers is promised, and not only the order of the processes. */
  private get byArrival(): boolean {
    const { queue } = this.terms;
    return queue !== undefined && queue.kind !== 'lock';
  }

  private get wantedLease(): number | undefined {
    const { next } = this.callers;
    return next && this.context.initialLease(next);
  }

  private begin(isSent: boolean): Attempt {
    const { queue } = this.terms;
    // An owner with an entry keeps its lease time: the entry stores it.
    if (!this.stands && !isSent) this.lease = this.wantedLease ?? this.lease;
    if (queue === undefined) {
      if (this.isUsed) this.currentOwner = this.context.nextOwner();
      this.isUsed = true;
      this.doubtful = false;
    }
    // An owner with an entry keeps it. An entry that is forgotten in the queue would be granted the lock without a caller.
    const isPatient = this.callers.wait || this.stands;
    const takesEntry =
      isSent || (queue !== undefined && isPatient && this.context.queueMessages.isSubscribed);
    this.stands ||= takesEntry;
    this.lookAt = Infinity;
    return { askedAt: now(), takesEntry, wasSubscribed: this.callers.isSubscribed };
  }

  /**
   * Whether the acquisition was over before the answer came.
   * @param isSent the request went together with the release of another owner, so the release that gave this one up may
   *   have overtaken it
   */
  private isAnsweredLate(reply: AcquireReply | Error, isSent: boolean): boolean {
    const isLost = reply instanceof Error && !isRefusal(reply);
    this.doubtful ||= isLost;
    if (!this.isOver) return false;
    // The release that has been sent, or the hold that was granted, is the answer. But the request may arrive after that
    // release.
    if (isLost && this.tenure?.held === true) this.tenure.doubtful = true;
    else if (isLost || (isSent && this.tenure === undefined)) this.giveUp();
    return true;
  }

  private request({ takesEntry }: Attempt): AcquireRequest {
    const { name, queue, ownWriteHold } = this.terms;
    const { owner, lease: leaseTime } = this;
    if (queue === undefined) return { name, owner, leaseTime };
    const { kind, mode, capacity } = queue;
    const entry = takesEntry ? { arrival: this.arrival } : undefined;
    const request = { name, owner, leaseTime, queue: { kind, mode, capacity, entry, ownWriteHold } };
    return now() < this.keptUntil ? { ...request, shortens: this.keptToken } : request;
  }

  /** @returns when to ask again; the same in the methods that follow */
  private answeredWith({ askedAt }: Attempt, grant: Extract<AcquireReply, { granted: true }>): number {
    if (now() < deadlineOf(askedAt, this.lease)) {
      const { fencingToken, rivals = this.rivals } = grant;
      if (!this.take({ grantedAt: askedAt, fencingToken, rivals }) && !this.hasQueue) this.giveUp();
      return 0;
    }
    // An answer that comes after its own deadline counts as no answer. With a queue, the same owner asks again and gets a
    // valid answer. Without a queue, a new owner has to wait until this hold is taken back.
    if (this.hasQueue) this.stands = true;
    else this.giveUp();
    const later = this.failed({ askedAt }, tooLate(this.name), 0);
    return this.hasQueue ? 0 : later;
  }

  /**
   * False where the next caller wants another lease time than the one that was asked for. The caller that wanted that one
   * has left.
   */
  private take({ grantedAt, fencingToken, rivals }: Omit<TenureOrigin, 'owner' | 'leaseTime'>): boolean {
    const { owner, lease: leaseTime } = this;
    const handedOver = this.handedOverAt !== undefined;
    const { queue } = this.terms;
    if (this.wantedLease === undefined) {
      // No caller is left.
      this.stands = true;
      this.leave();
      return true;
    }
    if (this.wantedLease !== leaseTime) {
      this.stands = false;
      if (this.hasQueue) this.keptUntil = now() + leaseTime;
      this.keptToken = fencingToken;
      return false;
    }
    if (!this.become('granted')) return true;
    const stood = this.stands;
    const origin = { owner, grantedAt, leaseTime, fencingToken, queue, rivals, stood, handedOver };
    this.tenure = this.callers.granted(origin, this.doubtful);
    // Where the store has lost the token of that hold, the hold has not become shorter.
    if (this.tenure !== undefined) this.tenure.keptUntil = this.keptUntil;
    this.end();
    return true;
  }

  private busy(attempt: Attempt, refusal: Extract<AcquireReply, { granted: false }>): number {
    const { retryAfter, holder, arrival, listen } = refusal;
    this.answered = true;
    if (this.handedOverAt !== undefined && attempt.askedAt >= this.handedOverAt)
      this.handedOverAt = this.rivals = undefined;
    const doubt = (this.failure = doubtOf(refusal));
    this.holder = holder;
    this.arrival = arrival ?? this.arrival;
    if (retryAfter < Infinity) this.blockedUntil = now() + retryAfter;
    if (doubt === undefined) this.callers.refused(attempt.askedAt, refusedWith(refusal));
    else this.callers.failed(attempt.askedAt, doubt, false);
    if (this.isOver) return 0;
    if (this.callers.wait) this.context.acquisitionWaits();
    if (!this.hasQueue) return this.untilReleased(attempt, retryAfter);
    if (!attempt.takesEntry) {
      if (!this.callers.wait) return 0;
      this.askOnce(this.context.queueMessages.subscribe());
      return now() + Math.min(retryAfter, POLL);
    }
    if (listen !== true) this.callers.unsubscribe();
    else if (holder === undefined) this.callers.leftToOthers();
    else this.subscribeToReleases(attempt);
    this.claimsFrom = Math.min(this.claimsFrom, now() + CLAIM + driftOf(CLAIM));
    this.asked = attempt.askedAt >= this.claimsFrom;
    // Polls until the subscription is active, because it may have failed. The same applies on a store without queues.
    return listen === true && !attempt.wasSubscribed
      ? now() + Math.min(retryAfter, POLL)
      : this.after(retryAfter);
  }

  private untilReleased(attempt: Attempt, retryAfter: number): number {
    this.subscribeToReleases(attempt);
    // A hold without an end is also looked at, once per lease time: it may end without a message.
    const sleep = Math.min(retryAfter, attempt.wasSubscribed ? this.context.leaseTime : POLL);
    // Keeps the processes that wait for one lock from asking all at once when the hold ends.
    return now() + sleep + 1 + random() * Math.min(sleep / 10, 50);
  }

  /**
   * The release may have come between the request and the subscription, so the owner asks once more as soon as the
   * subscription is active.
   */
  private subscribeToReleases({ wasSubscribed }: Attempt): void {
    if (!wasSubscribed) this.askOnce(this.callers.subscribe());
  }

  /** Nothing waits for the subscription itself: a caller that comes meanwhile may want its answer sooner. */
  private askOnce(subscribed: Promise<boolean>): void {
    void subscribed.then((isSubscribed) => {
      if (isSubscribed) this.lookAgain();
    });
  }

  private failed({ askedAt }: Pick<Attempt, 'askedAt'>, error: Error, failures: number): number {
    // The request may have been carried out, or may still be carried out. It is taken back before a caller is told of the
    // failure.
    if (this.hasQueue && isGrantedInVain(error)) this.beginAnew();
    else if (this.doubtful && !this.hasQueue) this.giveUp();
    if (failures === 0 && isWorthAnotherTry(error)) return 0;
    const isFinal = !isLockUnavailableError(error) || error.permanent;
    if (isLockUnavailableError(error) && !isFinal) this.failure = error;
    this.callers.failed(askedAt, error, isFinal);
    return isFinal ? 0 : now() + backoff(failures);
  }

  /**
   * The store has granted the lock, and the grant does not count. The owner would stay the holder until its next request, and
   * keep out waiters that the store could serve. So it leaves, and another owner asks, behind those that wait already.
   */
  private beginAnew(): void {
    this.giveUp();
    this.context.acquisitionOver(this);
    this.firstOwner = this.currentOwner = this.context.nextOwner();
    this.stands = this.doubtful = this.asked = this.answered = false;
    this.arrival = this.holder = this.handedOverAt = this.rivals = undefined;
    this.keptUntil = this.blockedUntil = -Infinity;
    this.claimsFrom = Infinity;
    this.context.acquisitionBegun(this);
  }

  private get hasQueue(): boolean {
    return this.terms.queue !== undefined;
  }

  private giveUp(): void {
    const until = Math.max(now() + this.lease, this.keptUntil);
    const entryUntil = this.stands
      ? Math.max(until, this.blockedUntil) + this.lease + QUEUE_ENTRY_LIFE
      : until;
    this.context.releaser.release(this.releaseRequest, until, { insist: this.doubtful, entryUntil });
  }

  private end(): void {
    this.onEnd(this);
    this.resume?.();
  }

  /** When to look again. The holder may hold for long, and the message of its release may be lost. */
  private after(time: number): number {
    // The store sends the head of the queue no message about a hold that lasts as long as the head's own lease would,
    // unless that hold is a claim.
    const untold = this.byArrival ? Infinity : Math.max(this.lease, CLAIM);
    // The 1 ms and the random part keep waiters from looking before the end that the store has named, and from looking all
    // at once.
    const moment = now() + Math.min(time, this.context.leaseTime, untold) + 1 + random() * 20;
    return this.asked ? moment : Math.min(moment, this.claimsFrom);
  }

  /** Sleeps until the moment, unless a message names another one. */
  private sleepUntil(moment: number): Promise<void> {
    if (this.lookAt === Infinity) this.lookAt = moment;
    return new Promise((resolve) => {
      let timer: NodeJS.Timeout | undefined;
      this.resume = () => {
        clearTimer(timer);
        if (this.isOver || now() >= this.lookAt) {
          this.resume = undefined;
          resolve();
        } else {
          timer = this.context.setTimer(this.lookAt, () => this.resume?.());
        }
      };
      this.resume();
    });
  }
}

/** A store of the application need not be of TypeScript. */
function asReply(answer: AcquireReply | null | undefined): AcquireReply | Error {
  if (typeof answer?.granted === 'boolean') return answer;
  return new TypeError('the store answers an acquisition with something else than whether it is granted');
}
