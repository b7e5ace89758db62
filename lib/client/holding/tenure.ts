import type { AskedHolder, Asker } from '../../api/asker.js';
import { LockLostError, type LossReason } from '../../api/errors.js';
import { clearTimer } from '../../runtime/runtime.js';
import type { QueueTerms } from '../../store/lock-store.js';
import type { Rivals } from '../../store/queue-messages.js';
import type { Scope } from '../scope/scope.js';
import type { LocalQueue } from '../waiting/local-queue.js';
import { deadlineOf, now, timerAt } from './deadline.js';

/** The code that currently uses a tenure. */
export interface TenureUser {
  /** ms for which the store keeps the lock from other owners if it is released now. */
  readonly keepFor: number | undefined;
  onLost(error: LockLostError): void;
  /**
   * Whether a callback runs under the tenure and needs the lock until its end.
   * @param around only a callback that runs around this scope
   */
  isInUse(around?: Scope): boolean;
  onReleaseRequested(asker: AskedHolder): void;
  /** Called before the tenure goes to the next local owner. */
  onHandedOff(): void;
}

/** The lease that an acquisition asks for. A hand-off needs equal terms. */
export interface LeaseTerms {
  /** ms */
  readonly leaseTime: number;
  /** True: the watchdog renews the lease. False: a fixed lease. */
  readonly renewed: boolean;
}

/** The grant of the store that begins a tenure. */
export interface TenureOrigin {
  readonly owner: string;
  readonly fencingToken: number;
  /** On the monotonic clock, and no later than the grant. */
  readonly grantedAt: number;
  /** The granted lease, ms: shorter than in the terms if `maxHoldTime` is shorter. */
  readonly leaseTime: number;
  /** The terms of the request, if the store has queues. */
  readonly queue?: QueueTerms | undefined;
  /** Whether the owner had an entry in the store queue. */
  readonly stood?: boolean | undefined;
  /** Whether a message of the store announced the owner's turn. */
  readonly handedOver?: boolean | undefined;
  readonly rivals?: Rivals | undefined;
  /** Whether a request of the owner got no answer, so that it may arrive after the release. */
  readonly doubtful?: boolean;
}

/** The error for use of a lease after its release. */
export const releasedError = (
  { name, owner }: { name: string; owner: string },
  cause?: unknown,
): LockLostError => new LockLostError(name, { reason: 'released', owner, cause });

/**
 * The time during which this process holds a lock in the store. Local owners may use it one after another; the store
 * sees one owner. A tenure ends once: released or lost.
 */
export class Tenure {
  readonly owner: string;
  readonly queue: QueueTerms | undefined;
  readonly stood: boolean;
  readonly handedOver: boolean;
  readonly rivals: Rivals;
  /** On the monotonic clock, and no later than the grant. */
  readonly grantedAt: number;
  /** The last token given to a local owner. */
  fencingToken: number;
  /** The lease that the store granted last, ms, or its rest after `shorten`. */
  granted: number;
  /** The longest lease that the store has granted, ms. The store never shortens a lease. */
  longest: number;
  /** The end of the store's promise, on the monotonic clock. */
  deadline: number;
  /** The end of the present holder's `maxHoldTime`. */
  holdUntil = Infinity;
  /** Hand-offs between local holders in a row. */
  handoffs = 0;
  /** Renewals without an answer in a row. */
  failures = 0;
  /** See {@link TenureOrigin.doubtful}. */
  doubtful: boolean;
  /**
   * The latest moment at which the store may end the hold, if that is after the deadline: an extension got no answer, or
   * `shorten` has moved the deadline.
   */
  keptUntil = -Infinity;
  renewing = false;
  loss: LockLostError | undefined;
  user: TenureUser | undefined;
  /** The queue of the local callers that may use the tenure next. */
  local: LocalQueue | undefined;
  /** The label of the present holder, for events. */
  label = '';
  /** Whether its holder was asked to release it, so that no renewal prolongs it. */
  isRunningOut = false;
  /** The service that took the lock by force, according to a message that the store has yet to confirm. */
  forced: Asker | undefined;
  /** The service that asked for the lock before the present holder began. */
  asker: AskedHolder | undefined;
  private ended = false;
  private lossTimer: NodeJS.Timeout | undefined;

  constructor(
    readonly name: string,
    readonly terms: LeaseTerms,
    {
      owner,
      fencingToken,
      grantedAt,
      leaseTime,
      queue,
      stood = false,
      handedOver = false,
      rivals = 'none',
      doubtful = false,
    }: TenureOrigin,
    /** Removes the tenure from the client. Called once, for a release or a loss. */
    private readonly onEnd: (tenure: Tenure) => void,
    private readonly setTimer: typeof timerAt = timerAt,
  ) {
    this.owner = owner;
    this.queue = queue;
    this.stood = stood;
    this.handedOver = handedOver;
    this.rivals = rivals;
    this.doubtful = doubtful;
    this.grantedAt = grantedAt;
    this.fencingToken = fencingToken;
    this.granted = this.longest = leaseTime;
    this.deadline = deadlineOf(grantedAt, leaseTime);
  }

  /** Whether the lock is promised right now. The clock decides, so the answer is right even if the timer is late. */
  get held(): boolean {
    this.announceIfOver();
    return !this.ended;
  }

  get remainingTime(): number {
    return this.held ? this.endsAt - now() : 0;
  }

  /** ms until the present holder's `maxHoldTime` ends. Infinity for a fixed lease, which has an end of its own. */
  get timeToHold(): number {
    return this.terms.renewed ? this.holdUntil - now() : Infinity;
  }

  /** Whether the tenure excludes every other one, except a read of its own scope. */
  get isExclusive(): boolean {
    return this.queue?.mode !== 'shared';
  }

  get isFixed(): boolean {
    return !this.terms.renewed;
  }

  /** Whether a fixed lease was lost only because its time ended. */
  get ranOut(): boolean {
    return this.isFixed && this.loss?.reason === 'expired';
  }

  /** The latest moment at which the store ends the hold if this process sends no more commands, on the monotonic clock. */
  get keptAtMostUntil(): number {
    return Math.max(this.deadline, this.keptUntil);
  }

  private get endsAt(): number {
    return Math.min(this.deadline, this.holdUntil);
  }

  /** Whether a renewal is due but unanswered for half of the time between its due moment and the deadline. */
  get overdue(): boolean {
    return !this.ended && this.unanswered && this.deadline - now() < this.granted / 3;
  }

  private get unanswered(): boolean {
    return !this.isFixed && (this.failures > 0 || this.renewing);
  }

  /** Records a renewal. The deadline never moves back. */
  prolong(sentAt: number, leaseTime: number): void {
    if (this.ended) return;
    this.failures = 0;
    this.granted = leaseTime;
    this.longest = Math.max(this.longest, leaseTime);
    this.deadline = Math.max(this.deadline, deadlineOf(sentAt, leaseTime));
  }

  /**
   * Moves the end of the tenure forward. The store still keeps its longer lease.
   * @returns whether the tenure was longer before, and has not ended
   */
  shorten(until: number): boolean {
    if (this.ended || until >= this.deadline) return false;
    const moment = now();
    this.keptUntil = Math.max(this.keptUntil, moment + this.longest);
    this.granted = Math.min(this.granted, until - moment);
    this.deadline = until;
    this.catchUp();
    return this.held;
  }

  /** Limits the time of the present holder. */
  limit(until: number): void {
    this.holdUntil = until;
    if (until < this.deadline) this.catchUp();
  }

  /** Ends the tenure at its present deadline without further renewals, because its holder was asked to release it. */
  runOut(): void {
    if (this.ended) return;
    this.isRunningOut = true;
    this.limit(Math.min(this.deadline, this.holdUntil));
  }

  /**
   * Arms the timer that announces the end of the tenure. Most tenures are released before the watchdog's first look,
   * and need no timer until then.
   */
  guard(): void {
    if (!this.ended) this.lossTimer ??= this.armLossTimer();
  }

  /** Arms the timer anew, because the end is earlier than before. */
  catchUp(): void {
    clearTimer(this.lossTimer);
    this.lossTimer = undefined;
    this.guard();
  }

  /** @param cause a further explanation */
  lose(reason: LossReason, cause?: unknown): void {
    if (this.ended) return;
    this.ended = true;
    clearTimer(this.lossTimer);
    const forced = reason === 'taken' || reason === 'deleted' ? this.forced : undefined;
    const loss = new LockLostError(this.name, { reason, owner: this.owner, cause, forced });
    this.loss = loss;
    this.onEnd(this);
    this.user?.onLost(loss);
  }

  /** Reports a release request to the present holder. If that holder has not begun, it reads the request when it begins. */
  ask(asker: AskedHolder): void {
    if (!this.held) return;
    if (this.user === undefined) this.asker = asker;
    else this.user.onReleaseRequested(asker);
  }

  /** ms for which the store keeps the lock from other owners after a release. */
  get keepFor(): number | undefined {
    return this.user?.keepFor;
  }

  /** Ends the tenure in this process. The caller of this method informs the store. */
  end(): void {
    if (this.ended) return;
    this.ended = true;
    clearTimer(this.lossTimer);
    this.onEnd(this);
  }

  /** Called by all code that reads the clock, because the timer is late if the process was busy or stopped. */
  announceIfOver(): void {
    if (this.ended || now() < this.endsAt) return;
    if (this.isRunningOut) this.lose('expired');
    else if (this.terms.renewed && now() >= this.holdUntil) this.lose('max-hold');
    else this.lose(this.unanswered ? 'unreachable' : 'expired');
  }

  /** Not armed anew for each renewal: when the timer fires, it is armed for the new deadline. */
  private armLossTimer(): NodeJS.Timeout {
    return this.setTimer(this.endsAt, () => {
      if (this.held) this.lossTimer = this.armLossTimer();
    });
  }
}
