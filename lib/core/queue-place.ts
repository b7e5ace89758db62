import { isLockUnavailableError, LockAbortedError, type LockUnavailableError } from '../lock.errors.js';
import {
  type AcquireReply,
  CLAIM,
  type LockStore,
  PLACE_LIFE,
  type QueueMessage,
  type QueueTerms,
} from '../stores/lock-store.js';
import { deadlineOf, driftOf, now, timerAt } from './deadline.js';
import type { Ear } from './inbox.js';
import { onAbort } from './on-abort.js';
import type { Tenure, TenureOrigin } from './tenure.js';
import {
  backoff,
  type Busy,
  GRACE,
  isRefusal,
  POLL,
  tooLate,
  unanswered,
  type WaitingContext,
  type WaitRequest,
  WaitTimer,
} from './waiting.js';

export interface QueuedRequest extends WaitRequest {
  readonly name: string;
  readonly queue: QueueTerms;
  /** Owner of this scope's own write hold, beside which it may read. */
  readonly beside: string | undefined;
}

/** A message about a place. */
export type PlaceMessage = Exclude<QueueMessage, { readonly type: 'lost' }>;

export interface PlacesContext extends WaitingContext {
  readonly store: Pick<LockStore, 'acquire'>;
  /** The module's, ms: nobody waits for a message for longer. */
  readonly leaseTime: number;
  open(request: QueuedRequest, origin: TenureOrigin): Tenure;
}

/** Keeps those who look by themselves from looking before the end that they were told, or all at once, ms. */
const jitter = () => 1 + Math.random() * 20;

/** One owner's place, from its first request to its answer. */
export class QueuePlace {
  private arrival: number | undefined;
  /** ms */
  private readonly leaseTime: number;
  /** From when on a claim is all that the store grants by a message; see CLAIM. */
  private claimsFrom = Infinity;
  /** The store has been asked since then, so that no message of a whole lease can have been lost. */
  private asked = false;
  /** When the hold in the way ends by itself, as the store has last said. */
  private blockedUntil = -Infinity;
  private settled = false;
  private readonly arrivedAt = now();
  /** The store has said that somebody else has it: until then nobody knows. */
  private answered = false;
  /** When the request left that has not been answered yet. */
  private askedAt: number | undefined;
  /** It has asked for a place in the queue. */
  private stands = false;
  private tenure: Tenure | undefined;
  /** A request got no answer, so that it may arrive later than what was sent after it. */
  private doubtful = false;
  /** The wait time is over, but what has been asked may still be answered. */
  private expired = false;
  private lookAt = 0;
  private resume: (() => void) | undefined;
  private lastHolder: string | undefined;
  private lastFailure: LockUnavailableError | undefined;
  private waitTimer: WaitTimer | undefined;
  private readonly ignoreSignal: (() => void) | undefined;

  constructor(
    private readonly owner: string,
    readonly request: QueuedRequest,
    private readonly context: PlacesContext,
    private readonly ear: Ear,
    private readonly answer: (answer: Tenure | Busy | Error) => void,
  ) {
    const { name, terms, waitTime, signal } = request;
    this.leaseTime = context.initialLease(terms);
    if (waitTime > 0 && waitTime < Infinity) this.expireAt(this.arrivedAt + waitTime);
    if (signal === undefined) return;
    this.ignoreSignal = onAbort(signal, () => {
      this.leave(new LockAbortedError(name, signal.reason));
    });
  }

  /** Asks, and waits for the turn, until there is an answer. The same owner may ask again: that changes nothing. */
  async stand(): Promise<void> {
    const { store } = this.context;
    const { leaseTime } = this;
    const { name, queue, beside, waitTime } = this.request;
    // Who stands has to be heard of first; asking before that would be a command for nothing where it is busy.
    if (waitTime > 0 && this.ear.untried) await this.ear.listen();
    for (let failures = 0; !this.isSettled();) {
      const place = waitTime > 0 && this.ear.listening ? { arrival: this.arrival } : undefined;
      const sentAt = now();
      this.askedAt = sentAt;
      this.stands ||= place !== undefined;
      this.lookAt = Infinity;
      let reply: AcquireReply | Error;
      try {
        const { kind, mode, capacity } = queue;
        const request = { kind, mode, capacity, place, beside };
        reply = await store.acquire({ name, owner: this.owner, leaseTime, queue: request });
      } catch (error) {
        reply = error as Error;
      }
      this.askedAt = undefined;
      const lost = reply instanceof Error && !isRefusal(reply);
      this.doubtful ||= lost;
      // Left or granted meanwhile: the release that has been sent, or the hold that stands, is the answer.
      if (this.isSettled()) {
        if (lost) this.mayArriveYet();
        return;
      }

      if (reply instanceof Error) {
        if (!isLockUnavailableError(reply) || reply.permanent || waitTime === 0 || this.expired) {
          this.leave(reply);
          return;
        }
        this.lastFailure = reply;
        await this.sleepUntil(now() + backoff(failures++));
      } else if (reply.granted) {
        // An answer after its own deadline is none; asking again makes it one.
        if (now() < deadlineOf(sentAt, leaseTime)) {
          this.grant({ grantedAt: sentAt, leaseTime, fencingToken: reply.fencingToken });
          return;
        }
        this.stands = true;
        this.lastFailure = tooLate(name);
        if (waitTime === 0 || this.expired) this.leave(this.lastFailure);
      } else {
        failures = 0;
        this.answered = true;
        this.lastFailure = undefined;
        this.lastHolder = reply.holder;
        this.arrival = reply.arrival ?? this.arrival;
        if (reply.retryAfter < Infinity) this.blockedUntil = now() + reply.retryAfter;
        if (waitTime === 0 || this.expired) this.leave({ busy: true, holder: reply.holder });
        else if (place !== undefined) {
          this.claimsFrom = Math.min(this.claimsFrom, now() + CLAIM + driftOf(CLAIM));
          this.asked = sentAt >= this.claimsFrom;
          await this.sleepUntil(this.after(reply.retryAfter));
        } else if (!(await this.ear.listen()))
          await this.sleepUntil(now() + Math.min(reply.retryAfter, POLL));
      }
    }
  }

  hear(message: PlaceMessage): void {
    if (message.type === 'missed') {
      this.lookAgain();
    } else if (message.type === 'next') {
      this.lookAt = this.after(message.within);
      this.resume?.();
    } else {
      const { leaseTime } = this;
      const isClaim = message.leaseTime < leaseTime;
      const isLate = now() >= deadlineOf(message.grantedAt, Math.min(CLAIM, leaseTime));
      // Asking makes a hold that still stands a whole lease. The caller hears of it only then.
      if (isClaim || isLate) this.lookAgain();
      else this.grant({ ...message, leaseTime });
    }
  }

  lookAgain(): void {
    this.lookAt = 0;
    this.resume?.();
  }

  /** Gives up the place, and the hold if it has just been granted, before anybody hears of it. */
  leave(answer: Busy | Error): void {
    if (this.settled) return;
    if (this.stands || this.doubtful || this.askedAt !== undefined) this.giveUp();
    this.settle(answer);
  }

  /** It is all over, but a request may arrive after the release, which therefore has to be repeated. */
  private mayArriveYet(): void {
    if (this.tenure?.held === true) this.tenure.doubtful = true;
    else this.giveUp();
  }

  private giveUp(): void {
    const { leaseTime } = this;
    const { name, queue } = this.request;
    const request = { name, owner: this.owner, leaseTime, queue };
    const until = now() + leaseTime;
    const placeUntil = Math.max(until, this.blockedUntil) + leaseTime + PLACE_LIFE;
    void this.context.releaser.release(request, until, { insist: this.doubtful, placeUntil });
  }

  private grant({ grantedAt, leaseTime, fencingToken }: Omit<TenureOrigin, 'owner'>): void {
    if (this.settled) return;
    const { queue } = this.request;
    const tenure = this.context.open(this.request, {
      owner: this.owner,
      grantedAt,
      leaseTime,
      fencingToken,
      queue,
    });
    tenure.doubtful = this.doubtful;
    this.tenure = tenure;
    this.settle(tenure);
  }

  private settle(answer: Tenure | Busy | Error): void {
    this.settled = true;
    // First of all: somebody waits for it.
    this.answer(answer);
    this.waitTimer?.clear();
    this.ignoreSignal?.();
    this.resume?.();
  }

  /** When to look again. The holder may hold for long, and the message that it has gone may be lost. */
  private after(time: number): number {
    const moment = now() + Math.min(time, this.context.leaseTime) + jitter();
    return this.asked ? moment : Math.min(moment, this.claimsFrom);
  }

  private isSettled(): boolean {
    return this.settled;
  }

  private expireAt(moment: number): void {
    const timer = (this.waitTimer ??= new WaitTimer());
    timer.set(
      moment,
      () => {
        this.expire();
      },
      (error) => {
        this.leave(error);
      },
    );
  }

  private expire(): void {
    const unheard = !this.answered && this.lastFailure === undefined;
    // What has to be opened before it can ask takes its time, too.
    const silentSince = this.askedAt ?? (unheard ? this.arrivedAt : undefined);
    const lastCall = (silentSince ?? -Infinity) + GRACE;
    if (now() < lastCall) {
      this.expired = true;
      this.expireAt(lastCall);
      return;
    }
    const { name } = this.request;
    const silence = silentSince === undefined ? undefined : unanswered(name, silentSince);
    this.leave(this.lastFailure ?? silence ?? { busy: true, holder: this.lastHolder });
  }

  /** Until the moment, unless a message names another one. */
  private sleepUntil(moment: number): Promise<void> {
    if (this.lookAt === Infinity) this.lookAt = moment;
    return new Promise((resolve) => {
      let timer: NodeJS.Timeout | undefined;
      this.resume = () => {
        clearTimeout(timer);
        if (this.settled || now() >= this.lookAt) {
          this.resume = undefined;
          resolve();
        } else {
          timer = timerAt(this.lookAt, () => this.resume?.());
        }
      };
      this.resume();
    });
  }
}
