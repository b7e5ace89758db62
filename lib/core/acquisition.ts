import { isLockUnavailableError, type LockUnavailableError } from '../lock.errors.js';
import {
  type AcquireReply,
  type AcquireRequest,
  CLAIM,
  type LockStore,
  QUEUE_ENTRY_LIFE,
  type QueueMessage,
  type QueueTerms,
  type ReleaseRequest,
} from '../stores/lock-store.js';
import { deadlineOf, driftOf, now, type timerAt } from './deadline.js';
import type { QueueMessages } from './queue-subscription.js';
import { mayFollow, type AcquisitionState } from './acquisition-state.js';
import type { Tenure, TenureOrigin, LeaseTerms } from './tenure.js';
import { backoff, isRefusal, POLL, tooLate, type WaitingContext } from './waiting.js';

/** What is asked for. */
export interface LockTerms {
  readonly name: string;
  /** Undefined on a store without queues. */
  readonly queue: QueueTerms | undefined;
  /** Owner of this scope's own write hold, beside which it may read. */
  readonly ownWriteHold: string | undefined;
}

/** The callers that a place is for. Once it has none left it is told to leave. */
export interface Callers {
  /** What the next of them wants. There is one until the place is told to leave. */
  readonly next: LeaseTerms | undefined;
  /** Whether some of them wait; else the store is only asked. */
  readonly wait: boolean;
  /** Whether the releases of the lock are heard, which is needed where no queue hands it over. */
  readonly hearing: boolean;
  /** @returns whether releases are heard now */
  hear(): Promise<boolean>;
  /** The lock is left to others for a moment. */
  leftToOthers(): void;
  stopHearing(): void;
  /** Somebody else has it: those who asked before `askedAt` and do not wait any longer get their answer. */
  refused(askedAt: number, holder: string | undefined): void;
  /** @param isFinal no second try can turn it, and those who asked before `askedAt` get their answer */
  failed(askedAt: number, error: Error, isFinal: boolean): void;
  /** @param isDoubtful a request of this owner may arrive after its release */
  granted(origin: TenureOrigin, isDoubtful: boolean): Tenure | undefined;
}

/** A message about a place. */
export type AcquisitionMessage = Exclude<QueueMessage, { readonly type: 'lost' }>;

export interface AcquisitionContext extends WaitingContext {
  readonly store: Pick<LockStore, 'acquire'>;
  /** The module's, ms: nobody waits for a message for longer. */
  readonly leaseTime: number;
  /** Where messages about places are heard. */
  readonly queueMessages: QueueMessages;
  readonly setTimer: typeof timerAt;
}

/** A request for the lock. */
interface Attempt {
  readonly askedAt: number;
  /** It takes a place in the queue where the lock is busy. */
  readonly takesPlace: boolean;
  /** Releases were heard already when it was sent, so that none after it can be missed. */
  readonly hearing: boolean;
}

/**
 * One owner's way to a lock of any kind, from the first request until it is granted or nobody wants it any more.
 *
 * Where the store has queues the owner stands in one, and the store tells it when its turn has come. It asks again by itself
 * at the time that the store has named, because a message may be lost; that changes nothing for the same owner. Where
 * there are no queues each release wakes it, and it asks with a new owner every time: what takes back a request that got no
 * answer may arrive late.
 */
export class Acquisition {
  /** Changed by `become` only. */
  private state: AcquisitionState = 'idle';
  private currentOwner: string;
  /** A request of this owner has been sent. */
  private isUsed = false;
  /** What is asked for, ms. */
  private lease: number;
  private attempt: Attempt | undefined;
  private arrival: number | undefined;
  private readonly createdAt = now();
  /** It may have a place in the queue. */
  private stands = false;
  /** A request got no answer, so that it may arrive later than what was sent after it. */
  private doubtful = false;
  /** From when on a claim is all that the store grants by a message; see CLAIM. */
  private claimsFrom = Infinity;
  /** The store has been asked since then, so that no message of a whole lease can have been lost. */
  private asked = false;
  /** When the hold in the way ends by itself, as the store has last said. */
  private blockedUntil = -Infinity;
  /** The store has said that somebody else has it: until then nobody knows. */
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
    /** It is granted or left. */
    private readonly onEnd: (place: Acquisition) => void,
  ) {
    this.currentOwner = context.nextOwner();
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

  /** What gives it up. */
  get releaseRequest(): ReleaseRequest {
    return { name: this.name, owner: this.owner, leaseTime: this.lease, queue: this.terms.queue };
  }

  /** Who has the lock, as the store has last said; or why it has said nothing. */
  get obstacle(): {
    readonly holder: string | undefined;
    readonly failure: LockUnavailableError | undefined;
  } {
    return { holder: this.holder, failure: this.failure };
  }

  /** Since when the store has kept silent: a request is under way, or what has to be opened before it takes its time. */
  get silentSince(): number | undefined {
    const unheard = !this.answered && this.failure === undefined;
    return this.attempt?.askedAt ?? (unheard ? this.createdAt : undefined);
  }

  /**
   * Asks, and waits for the turn, until it is over.
   * @param sent the answer to a request that was sent with the release of the owner before
   * @param after ms to wait first, unless a release is heard
   */
  async start(sent?: Promise<AcquireReply>, after = 0): Promise<void> {
    const { queueMessages } = this.context;
    if (after > 0) await this.sleepUntil(now() + after);
    // Whose order of arrival is promised has to be heard of first: asking before would be a command for nothing where it is busy.
    if (this.byArrival && this.callers.wait && queueMessages.untried) await queueMessages.listen();
    for (let failures = 0; this.become('asking'); sent = undefined) {
      const attempt = (this.attempt = this.begin(sent !== undefined));
      const reply = await (sent ?? this.context.store.acquire(this.request(attempt))).catch(
        (error: unknown) => error as Error,
      );
      // Not before it is read: who leaves meanwhile has to give up what it may have got.
      this.attempt = undefined;
      if (this.isAnsweredLate(reply, sent !== undefined)) return;
      let lookAt: number;
      if (reply instanceof Error) lookAt = this.failed(attempt, reply, failures++);
      else {
        failures = 0;
        lookAt = reply.granted ? this.answeredWith(attempt, reply) : await this.busy(attempt, reply);
      }
      if (this.become('standing')) await this.sleepUntil(lookAt);
    }
  }

  hear(message: AcquisitionMessage): void {
    if (message.type === 'missed') {
      this.lookAgain();
    } else if (message.type === 'granted') {
      const isClaim = message.leaseTime < this.lease;
      const isLate = now() >= deadlineOf(message.grantedAt, Math.min(CLAIM, this.lease));
      // Asking makes a hold that still stands a whole lease. The callers hear of it only then.
      if (isClaim || isLate || !this.take(message)) this.lookAgain();
    } else {
      if (message.listen === true) this.callers.leftToOthers();
      this.lookAt = message.listen === true ? now() + message.within : this.after(message.within);
      this.resume?.();
    }
  }

  lookAgain(): void {
    this.lookAt = 0;
    this.resume?.();
  }

  /** Gives up the place, and the hold if it has just been granted, before anybody hears of it. */
  leave(): void {
    if (!this.become('leaving')) return;
    if (this.stands || this.doubtful || this.attempt !== undefined) this.giveUp();
    this.end();
  }

  /** False where the state may not change: it is over. */
  private become(next: AcquisitionState): boolean {
    if (!mayFollow(this.state, next)) return false;
    this.state = next;
    return true;
  }

  private get isOver(): boolean {
    return this.state === 'granted' || this.state === 'leaving';
  }

  /** The order of the callers is promised, and not only that of the processes. */
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
    // Of a lease that it stands with, its place in the queue knows the length.
    if (!this.stands && !isSent) this.lease = this.wantedLease ?? this.lease;
    if (queue === undefined) {
      if (this.isUsed) this.currentOwner = this.context.nextOwner();
      this.isUsed = true;
      this.doubtful = false;
    }
    // Who stands keeps the place: one that is forgotten in the queue would be granted to nobody.
    const isPatient = this.callers.wait || this.stands;
    const takesPlace = isSent || (queue !== undefined && isPatient && this.context.queueMessages.listening);
    this.stands ||= takesPlace;
    this.lookAt = Infinity;
    return { askedAt: now(), takesPlace, hearing: this.callers.hearing };
  }

  /**
   * Whether it was over before the answer came.
   * @param isSent what gave it up may have overtaken the request, which went together with another owner's release
   */
  private isAnsweredLate(reply: AcquireReply | Error, isSent: boolean): boolean {
    const isLost = reply instanceof Error && !isRefusal(reply);
    this.doubtful ||= isLost;
    if (!this.isOver) return false;
    // The release that has been sent, or the hold that stands, is the answer. But the request may arrive after it.
    if (isLost && this.tenure?.held === true) this.tenure.doubtful = true;
    else if (isLost || (isSent && this.tenure === undefined)) this.giveUp();
    return true;
  }

  private request({ takesPlace }: Attempt): AcquireRequest {
    const { name, queue, ownWriteHold } = this.terms;
    const { owner, lease: leaseTime } = this;
    if (queue === undefined) return { name, owner, leaseTime };
    const { kind, mode, capacity } = queue;
    const entry = takesPlace ? { arrival: this.arrival } : undefined;
    return { name, owner, leaseTime, queue: { kind, mode, capacity, entry, ownWriteHold } };
  }

  /** @returns when to ask again, here and in what follows */
  private answeredWith({ askedAt }: Attempt, grant: Extract<AcquireReply, { granted: true }>): number {
    if (now() < deadlineOf(askedAt, this.lease)) {
      const { fencingToken, rivals } = grant;
      if (!this.take({ grantedAt: askedAt, fencingToken, rivals }) && !this.hasQueue) this.giveUp();
      return 0;
    }
    // An answer after its own deadline is none. Asking again makes it one; a new owner has to wait until it is taken back.
    if (this.hasQueue) this.stands = true;
    else this.giveUp();
    const later = this.failed({ askedAt }, tooLate(this.name), 0);
    return this.hasQueue ? 0 : later;
  }

  /** False where the next caller wants another lease than the one that it was asked for, who has left. */
  private take({ grantedAt, fencingToken, rivals }: Omit<TenureOrigin, 'owner' | 'leaseTime'>): boolean {
    const { owner, lease: leaseTime } = this;
    const { queue } = this.terms;
    if (this.wantedLease === undefined) {
      // Nobody is left who wants it.
      this.stands = true;
      this.leave();
      return true;
    }
    if (this.wantedLease !== leaseTime) {
      this.stands = false;
      return false;
    }
    if (!this.become('granted')) return true;
    const origin = { owner, grantedAt, leaseTime, fencingToken, queue, rivals, stood: this.stands };
    this.tenure = this.callers.granted(origin, this.doubtful);
    this.end();
    return true;
  }

  private async busy(
    attempt: Attempt,
    { retryAfter, holder, arrival, listen }: Extract<AcquireReply, { granted: false }>,
  ): Promise<number> {
    const { queueMessages } = this.context;
    this.answered = true;
    this.failure = undefined;
    this.holder = holder;
    this.arrival = arrival ?? this.arrival;
    if (retryAfter < Infinity) this.blockedUntil = now() + retryAfter;
    this.callers.refused(attempt.askedAt, holder);
    if (this.isOver) return 0;
    if (!this.hasQueue) return this.untilReleased(attempt, retryAfter);
    if (!attempt.takesPlace) {
      if (!this.callers.wait || (await queueMessages.listen())) return 0;
      return now() + Math.min(retryAfter, POLL);
    }
    if (listen !== true) this.callers.stopHearing();
    else if (holder === undefined) this.callers.leftToOthers();
    else this.hearReleases(attempt);
    this.claimsFrom = Math.min(this.claimsFrom, now() + CLAIM + driftOf(CLAIM));
    this.asked = attempt.askedAt >= this.claimsFrom;
    // Until a subscription stands, which may have failed, as where there are no queues.
    return listen === true && !attempt.hearing ? now() + Math.min(retryAfter, POLL) : this.after(retryAfter);
  }

  private untilReleased(attempt: Attempt, retryAfter: number): number {
    this.hearReleases(attempt);
    // A hold without an end is looked at all the same, once a lease: it may go without a message.
    const sleep = Math.min(retryAfter, attempt.hearing ? this.context.leaseTime : POLL);
    // Keeps the processes that wait for one lease from asking all at once when it ends.
    return now() + sleep + 1 + Math.random() * Math.min(sleep / 10, 50);
  }

  /** The release may have come between the request and the subscription: asks once more as soon as that stands. */
  private hearReleases({ hearing }: Attempt): void {
    if (hearing) return;
    void this.callers.hear().then((heard) => {
      if (heard) this.lookAgain();
    });
  }

  private failed({ askedAt }: Pick<Attempt, 'askedAt'>, error: Error, failures: number): number {
    // It may have been carried out, or may yet be: take it back before anybody hears of the failure.
    if (this.doubtful && !this.hasQueue) this.giveUp();
    const isFinal = !isLockUnavailableError(error) || error.permanent;
    if (isLockUnavailableError(error) && !isFinal) this.failure = error;
    this.callers.failed(askedAt, error, isFinal);
    return isFinal ? 0 : now() + backoff(failures);
  }

  private get hasQueue(): boolean {
    return this.terms.queue !== undefined;
  }

  private giveUp(): void {
    const until = now() + this.lease;
    const placeUntil = this.stands
      ? Math.max(until, this.blockedUntil) + this.lease + QUEUE_ENTRY_LIFE
      : until;
    void this.context.releaser.release(this.releaseRequest, until, { insist: this.doubtful, placeUntil });
  }

  private end(): void {
    this.onEnd(this);
    this.resume?.();
  }

  /** When to look again. The holder may hold for long, and the message that it has gone may be lost. */
  private after(time: number): number {
    // The store leaves the first in line untold of a hold that lasts as long as its own lease would, if that is not a claim.
    const untold = this.byArrival ? Infinity : Math.max(this.lease, CLAIM);
    // The rest keeps those who look from doing so before the end that they were told, or all at once.
    const moment = now() + Math.min(time, this.context.leaseTime, untold) + 1 + Math.random() * 20;
    return this.asked ? moment : Math.min(moment, this.claimsFrom);
  }

  /** Until the moment, unless a message names another one. */
  private sleepUntil(moment: number): Promise<void> {
    if (this.lookAt === Infinity) this.lookAt = moment;
    return new Promise((resolve) => {
      let timer: NodeJS.Timeout | undefined;
      this.resume = () => {
        clearTimeout(timer);
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
