import type { AskedHolder, Asker } from '../../api/asker.js';
import { LockLostError, type LossReason } from '../../api/errors.js';
import { clearTimer } from '../../runtime/runtime.js';
import type { QueueTerms } from '../../store/lock-store.js';
import type { Rivals } from '../../store/queue-messages.js';
import { deadlineOf, now, timerAt } from './deadline.js';

/** The code that acts under a tenure at the moment, and that is told when the tenure ends too early. */
export interface TenureUser {
  /** ms for which no other owner is to get the lock if it is released now. */
  readonly keepFor: number | undefined;
  onLost(error: LockLostError): void;
  /** A callback runs under it, and needs the lock until its end. */
  readonly isInUse: boolean;
  /** Another asks for the lock. */
  onReleaseRequested(asker: AskedHolder): void;
  /** Called once a second while this process holds a lock for longer than that, at each holder. */
  onLongHold?(): void;
  /** The next owner of this process is about to have it. */
  onHandedOff(): void;
}

/** What an acquisition asks for, which a hand-off has to match. */
export interface LeaseTerms {
  /** ms */
  readonly leaseTime: number;
  /** Renewed by the watchdog, or a fixed lease. */
  readonly renewed: boolean;
}

/** How the store has granted it. */
export interface TenureOrigin {
  readonly owner: string;
  readonly fencingToken: number;
  /** On the monotonic clock, and not later than the grant. */
  readonly grantedAt: number;
  /** What the store has granted, ms: less than the terms say where `maxHoldTime` is shorter. */
  readonly leaseTime: number;
  /** The terms of the request, where the store has queues. */
  readonly queue?: QueueTerms | undefined;
  /** The owner had an entry in the store queue. */
  readonly stood?: boolean | undefined;
  /** The store has told the owner that its turn has come. */
  readonly handedOver?: boolean | undefined;
  readonly rivals?: Rivals | undefined;
  /** A request of the owner got no answer, and may arrive after the release. */
  readonly doubtful?: boolean;
  /** Until when the store may keep a longer hold of the owner, on the monotonic clock. */
  readonly keptUntil?: number | undefined;
}

/** For code that uses a lease after its release. */
export const releasedError = (
  { name, owner }: { name: string; owner: string },
  cause?: unknown,
): LockLostError => new LockLostError(name, { reason: 'released', owner, cause });

/**
 * The time during which this process holds a lock in the store. Several local owners may use it one after another; the
 * store sees one owner. A tenure ends once: released or lost.
 */
export class Tenure {
  readonly owner: string;
  readonly queue: QueueTerms | undefined;
  readonly stood: boolean;
  readonly handedOver: boolean;
  readonly rivals: Rivals;
  /** When the store granted it, on the monotonic clock, and not later. */
  readonly grantedAt: number;
  /** The last token given out under this tenure. */
  fencingToken: number;
  /** What the store has last granted, ms, or what is left of that once its holder needs less. */
  granted: number;
  /** The longest lease that the store has granted, ms. It never shortens one. */
  longest: number;
  /** Until when the store's promise holds, on the monotonic clock. */
  deadline: number;
  /** When `maxHoldTime` of the present holder is over. */
  holdUntil = Infinity;
  /** How many times in a row it went from one local holder to the next. */
  handoffs = 0;
  /** Renewals in a row that got no answer. */
  failures = 0;
  /** A request of its owner got no answer, and may arrive after the release. */
  doubtful: boolean;
  /**
   * Until when the store may keep it, longer than this process believes: where an extension got no answer, or where it was granted
   * for the lease time of a caller that has left.
   */
  keptUntil: number;
  /** A renewal is under way. */
  renewing = false;
  /** Why it was lost. */
  loss: LockLostError | undefined;
  user: TenureUser | undefined;
  /** The label of the present holder, for events. */
  label = '';
  /** Its holder has been told to give it up, and nothing makes it longer. */
  isRunningOut = false;
  /** The service that has taken it by force, as a message says that the store has still to confirm. */
  forced: Asker | undefined;
  /** The service that has asked for it before its present holder has begun. */
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
      keptUntil = -Infinity,
    }: TenureOrigin,
    /** Removes the tenure from the records of the client. Called once, in whatever way the tenure ends. */
    private readonly onEnd: (tenure: Tenure) => void,
    private readonly setTimer: typeof timerAt = timerAt,
  ) {
    this.owner = owner;
    this.queue = queue;
    this.stood = stood;
    this.handedOver = handedOver;
    this.rivals = rivals;
    this.doubtful = doubtful;
    this.keptUntil = keptUntil;
    this.grantedAt = grantedAt;
    this.fencingToken = fencingToken;
    this.granted = this.longest = leaseTime;
    this.deadline = deadlineOf(grantedAt, leaseTime);
  }

  /** Whether it is promised right now. The clock decides, so this is right even where the timer is late. */
  get held(): boolean {
    this.announceIfOver();
    return !this.ended;
  }

  get remainingTime(): number {
    return this.held ? this.endsAt - now() : 0;
  }

  /** ms until `maxHoldTime` of the present holder is over. Infinity where the lease is fixed and has an end of its own. */
  get timeToHold(): number {
    return this.terms.renewed ? this.holdUntil - now() : Infinity;
  }

  /** A fixed lease, which ends when its time is over. */
  get isFixed(): boolean {
    return !this.terms.renewed;
  }

  /** It was a fixed lease, and was lost only because its time ended. */
  get ranOut(): boolean {
    return this.isFixed && this.loss?.reason === 'expired';
  }

  /** Until when the store may keep it if this process does nothing more, on the monotonic clock. */
  get keptAtMostUntil(): number {
    return Math.max(this.deadline, this.keptUntil);
  }

  private get endsAt(): number {
    return Math.min(this.deadline, this.holdUntil);
  }

  /** A renewal has been due for half of the time that was left for it, and none has succeeded. */
  get overdue(): boolean {
    return !this.ended && this.unanswered && this.deadline - now() < this.granted / 3;
  }

  /** A renewal that has been asked for has not succeeded. */
  private get unanswered(): boolean {
    return !this.isFixed && (this.failures > 0 || this.renewing);
  }

  /** The store has confirmed a longer lease. A deadline never moves back. */
  prolong(sentAt: number, leaseTime: number): void {
    if (this.ended) return;
    this.failures = 0;
    this.granted = leaseTime;
    this.longest = Math.max(this.longest, leaseTime);
    this.deadline = Math.max(this.deadline, deadlineOf(sentAt, leaseTime));
  }

  /**
   * Its holder needs it only until that moment. The store keeps what it has granted.
   * @returns whether it lasted for longer, and still lasts
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

  /** From now on the present holder has it until that moment at most. */
  limit(until: number): void {
    this.holdUntil = until;
    if (until < this.deadline) this.catchUp();
  }

  /** It ends at its present deadline, and no renewal changes that: its holder has been told to give it up. */
  runOut(): void {
    if (this.ended) return;
    this.isRunningOut = true;
    this.limit(Math.min(this.deadline, this.holdUntil));
  }

  /**
   * From now on it ends when it is over, also if no code looks at it. Most are released long before, and need no timer until
   * the watchdog first looks at them.
   */
  guard(): void {
    if (!this.ended) this.lossTimer ??= this.armLossTimer();
  }

  /** The end has come closer than the timer knows. */
  catchUp(): void {
    clearTimer(this.lossTimer);
    this.lossTimer = undefined;
    this.guard();
  }

  /** @param cause a further explanation, if there is one */
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

  /** Another asks for it: its present holder is told, at the latest as it begins. */
  ask(asker: AskedHolder): void {
    if (!this.held) return;
    if (this.user === undefined) this.asker = asker;
    else this.user.onReleaseRequested(asker);
  }

  /** ms for which no other owner is to get the lock if it is given up now, in whatever way. */
  get keepFor(): number | undefined {
    return this.user?.keepFor;
  }

  /** The holder gives it up. What the store is told about it is up to the caller of this method. */
  end(): void {
    if (this.ended) return;
    this.ended = true;
    clearTimer(this.lossTimer);
    this.onEnd(this);
  }

  /**
   * The timer may be late, where the process was busy or stopped. The first code that looks at the clock announces the
   * loss.
   */
  announceIfOver(): void {
    if (this.ended || now() < this.endsAt) return;
    if (this.isRunningOut) this.lose('expired');
    else if (this.terms.renewed && now() >= this.holdUntil) this.lose('max-hold');
    else this.lose(this.unanswered ? 'unreachable' : 'expired');
  }

  /** Renewals move the deadline often. The timer catches up when it fires instead of being set anew each time. */
  private armLossTimer(): NodeJS.Timeout {
    return this.setTimer(this.endsAt, () => {
      if (this.held) this.lossTimer = this.armLossTimer();
    });
  }
}
