import { isLockUnavailableError, LockClosedError, type LockUnavailableError } from '../lock.errors.js';
import type { AcquireReply, LockStore, ReleaseReply, Subscription } from '../stores/lock-store.js';
import { deadlineOf, now, timerAt } from './deadline.js';
import type { Tenure, TenureOrigin, Terms } from './tenure.js';
import { type Line, Waiter } from './waiter.js';
import {
  backoff,
  type Busy,
  GRACE,
  isRefusal,
  POLL,
  tooLate,
  unanswered,
  type TenureKeeper,
  type WaitingContext,
  type WaitRequest,
} from './waiting.js';

/** How long a release's own message may take to come round before this process tries again without it, ms. */
const MESSAGE_ROUND = 100;

interface Attempt {
  readonly owner: string;
  readonly terms: Terms;
  readonly sentAt: number;
  /** Messages were heard already when it was sent, so that no release after it can be missed. */
  readonly listening: boolean;
  /** Nobody waits for it any more; its release is on the way. */
  abandoned: boolean;
}

/** What a line needs of the store. */
export type LineStore = Pick<LockStore, 'acquire' | 'subscribe'>;

export interface LineContext extends WaitingContext {
  readonly store: LineStore;
  /** The module's, ms */
  readonly leaseTime: number;
  readonly localHandoff: number;
  open(line: WaitingLine, terms: Terms, origin: TenureOrigin): Tenure;
  /** A holder begins. */
  begin(tenure: Tenure): Tenure;
  /** Asks the store about a hold, and ends one that is gone. Rejects when the store did not answer. */
  look(tenure: Tenure): Promise<void>;
}

/**
 * Those of one process who want one lock, first come first served. Only the line talks to the store, whoever stands
 * at its head: a hundred waiters cost what one costs.
 *
 * The line tries, subscribes, tries again (the release may have come in between), then sleeps until a message, the
 * end of the holder's lease, or somebody who wants an answer now. Where the holder is of this process, it sleeps until that
 * one is done, and asks the store whether the hold still stands before it refuses a caller for it.
 */
export class WaitingLine implements TenureKeeper, Line {
  /** In the order of their arrival. Made when somebody comes: most lines of many hold a lock and nobody waits. */
  private waiters: Set<Waiter> | undefined;
  /** The hold of this process, if it has one. */
  private tenure: Tenure | undefined;
  private attempt: Attempt | undefined;
  /** A question about the hold of this process that is under way. */
  private look: { sentAt: number } | undefined;
  private contending = false;
  private subscription: Subscription | undefined;
  private subscribing: Promise<boolean> | undefined;
  /** A wake-up has come since the last request was sent. */
  private woken = false;
  private resume: (() => void) | undefined;
  /** This process has just released while others of it wait: its message comes first, so that all race as equals. */
  private yielding = false;
  private lastFailure: LockUnavailableError | undefined;
  private failuresInRow = 0;
  private lastHolder: string | undefined;

  constructor(
    readonly name: string,
    private readonly context: LineContext,
    private readonly onIdle: (line: WaitingLine) => void,
  ) {}

  get length(): number {
    return this.waiters?.size ?? 0;
  }

  /**
   * Stands in line. Resolves with the tenure, or Busy when the wait time is over.
   * @throws LockAbortedError, LockUnavailableError, LockKindMismatchError, LockClosedError
   */
  join(request: WaitRequest): Promise<Tenure | Busy> {
    return new Promise((resolve, reject) => {
      const waiter = new Waiter(this, request, resolve, reject);
      (this.waiters ??= new Set()).add(waiter);
      if (request.waitTime > 0 && request.waitTime < Infinity) {
        this.expireAt(waiter, waiter.arrivedAt + request.waitTime);
      }
      if (!this.contending) void this.contend();
      // Whoever does not wait wants an answer that was given after they asked.
      else if (request.waitTime === 0) this.wake();
    });
  }

  /**
   * Gives the tenure to the next in line without asking the store, or back to the store.
   * @param keepFor ms for which nobody gets it
   * @returns as Releaser.release
   */
  async release(tenure: Tenure, keepFor?: number): Promise<ReleaseReply | undefined> {
    // The release of a lease that the store had forgotten says nothing of what the line has heard since.
    if (this.tenure === tenure) {
      if (keepFor === undefined && this.handOff(tenure)) return 'released';
      this.yielding = this.length > 0;
      this.woken = false;
    }
    return await this.context.giveBack(tenure, keepFor);
  }

  /** The store has granted the lock. A hold from before, which the line still believes in, is gone. */
  adopt(tenure: Tenure): void {
    const former = this.tenure;
    this.tenure = tenure;
    if (former === undefined) return;
    // The answers may come in another order than the grants.
    if (former.fencingToken > tenure.fencingToken) this.tenure = former;
    (this.tenure === tenure ? former : tenure).lose('taken');
  }

  /** The tenure is over, lost or released. */
  ended(tenure: Tenure): void {
    if (this.tenure !== tenure) return;
    this.tenure = undefined;
    this.resume?.();
    this.rest();
  }

  sendAway(refused: (request: WaitRequest) => boolean): void {
    for (const waiter of this.waiters ?? []) {
      if (!refused(waiter.request)) continue;
      this.leave(waiter);
      waiter.refuse(new LockClosedError(this.name));
    }
  }

  /**
   * A hand-off costs no command, so it needs certainty: the successor wants what the store has already given (a lease
   * that the watchdog renews, of the same length), most of it is left, and other processes have not waited too long.
   */
  private handOff(tenure: Tenure): boolean {
    const { terms } = tenure;
    const next = this.nextFor(terms);
    if (
      next === undefined ||
      !terms.renewed ||
      tenure.handoffs >= this.context.localHandoff ||
      tenure.remainingTime < terms.leaseTime / 2
    ) {
      return false;
    }
    tenure.holder = undefined;
    tenure.handoffs++;
    tenure.fencingToken++;
    next.grant(this.context.begin(tenure));
    return true;
  }

  private get head(): Waiter | undefined {
    for (const waiter of this.waiters ?? []) return waiter;
    return undefined;
  }

  /** The next in line, if a lease on these terms is what it wants. */
  private nextFor({ leaseTime, renewed }: Terms): Waiter | undefined {
    const { head } = this;
    return head?.terms.leaseTime === leaseTime && head.terms.renewed === renewed ? head : undefined;
  }

  /** Runs while somebody waits, once per line. */
  private async contend(): Promise<void> {
    this.contending = true;
    for (let head = this.head; head !== undefined; head = this.head) {
      if (this.tenure?.held === true) {
        // Held here. What follows the release is heard only by who has subscribed before it.
        if (this.hasWaiter({ impatient: false })) void this.listen();
        if (this.hasWaiter({ impatient: true })) void this.lookAt(this.tenure);
        this.woken = false;
        await this.sleepUntil(Infinity);
      } else if (this.yielding) {
        this.yielding = false;
        if (this.subscription?.active === true) await this.sleepUntil(now() + MESSAGE_ROUND);
      } else {
        const again = await this.tryFor(head);
        if (again > now()) await this.sleepUntil(again);
      }
    }
    this.contending = false;
    this.rest();
  }

  /**
   * Asks the store once.
   * @returns when to ask again if nothing happens before; a moment that has passed when there is no reason to wait
   */
  private async tryFor(head: Waiter): Promise<number> {
    const { store } = this.context;
    const attempt: Attempt = {
      owner: this.context.nextOwner(),
      terms: head.terms,
      sentAt: now(),
      listening: this.subscription?.active === true,
      abandoned: false,
    };
    const leaseTime = this.context.initialLease(head.terms);
    this.attempt = attempt;
    this.woken = false;
    let reply: AcquireReply | Error;
    try {
      reply = await store.acquire({ name: this.name, owner: attempt.owner, leaseTime });
    } catch (error) {
      reply = error as Error;
    }
    this.attempt = undefined;
    if (reply instanceof Error) {
      // It may have been carried out, or may yet be: take it back before anybody hears of the failure.
      if (!isRefusal(reply)) void this.takeBack(attempt, leaseTime, true);
      return attempt.abandoned ? 0 : this.failed(attempt, reply);
    } else if (attempt.abandoned) {
      return 0; // its release has been sent behind it
    } else if (!reply.granted) {
      return this.busy(attempt, reply.retryAfter, reply.holder);
    } else if (now() >= deadlineOf(attempt.sentAt, leaseTime)) {
      await this.takeBack(attempt, leaseTime);
      return this.failed(attempt, tooLate(this.name));
    } else {
      const taker = this.nextFor(attempt.terms);
      if (taker === undefined) {
        // Whoever it was for has left, and the next in line wants another lease.
        await this.takeBack(attempt, leaseTime);
        return 0;
      }
      this.storeAnswered();
      const { fencingToken } = reply;
      const { owner, terms, sentAt } = attempt;
      const tenure = this.context.open(this, terms, { owner, fencingToken, grantedAt: sentAt, leaseTime });
      this.adopt(tenure);
      taker.grant(this.context.begin(tenure));
      return 0;
    }
  }

  /** Asks the store about the hold of this process, once for all who want to know. */
  private async lookAt(tenure: Tenure): Promise<void> {
    if (this.look !== undefined) return;
    const look = { sentAt: now() };
    this.look = look;
    await Promise.resolve(); // whoever asks in the same turn shares the answer
    look.sentAt = now();
    let answer: Busy | Error = { busy: true, holder: tenure.owner };
    try {
      await this.context.look(tenure);
    } catch (error) {
      answer = error as Error;
    }
    this.look = undefined;
    if (this.tenure !== tenure || !tenure.held) return;
    this.refuseImpatient(look.sentAt, answer);
    this.resume?.();
  }

  private busy(attempt: Attempt, retryAfter: number, holder: string | undefined): number {
    this.storeAnswered();
    this.lastHolder = holder;
    this.refuseImpatient(attempt.sentAt, { busy: true, holder });
    if (this.length === 0 || this.woken) return 0;
    if (!attempt.listening) {
      // The release may have come between the request and the subscription: try once more as soon as that stands.
      void this.listen().then((heard) => {
        if (heard) this.wake();
      });
    }
    // A hold without an end is looked at all the same, once a lease: it may go without a message.
    const sleep = Math.min(retryAfter, attempt.listening ? this.context.leaseTime : POLL);
    // The jitter keeps the processes that wait for one lease from asking all at once when it ends.
    const jitter = 1 + Math.random() * Math.min(sleep / 10, 50);
    return now() + sleep + jitter;
  }

  private failed(attempt: Attempt, error: Error): number {
    if (!isLockUnavailableError(error) || error.permanent) {
      for (const waiter of this.waiters ?? []) {
        if (waiter.arrivedAt <= attempt.sentAt) waiter.refuse(error);
      }
      return 0;
    }
    this.lastFailure = error;
    this.refuseImpatient(attempt.sentAt, error);
    return now() + backoff(this.failuresInRow++);
  }

  private storeAnswered(): void {
    this.lastFailure = undefined;
    this.failuresInRow = 0;
  }

  private takeBack({ owner }: Attempt, leaseTime: number, insist = false): Promise<ReleaseReply | undefined> {
    return this.context.releaser.release({ name: this.name, owner }, now() + leaseTime, { insist });
  }

  /** Answers those who asked before `since` and do not wait any longer. */
  private refuseImpatient(since: number, answer: Busy | Error): void {
    for (const waiter of this.waiters ?? []) {
      if (waiter.impatient && waiter.arrivedAt <= since) waiter.refuse(answer);
    }
  }

  private hasWaiter({ impatient }: { readonly impatient: boolean }): boolean {
    for (const waiter of this.waiters ?? []) if (waiter.impatient === impatient) return true;
    return false;
  }

  private expireAt(waiter: Waiter, moment: number): void {
    waiter.expireAt(moment, () => {
      this.expire(waiter);
    });
  }

  private expire(waiter: Waiter): void {
    if (this.tenure?.held === true && !waiter.impatient) {
      // Not for a hold that only this process may believe in.
      waiter.impatient = true;
      this.expireAt(waiter, now() + GRACE);
      this.wake();
      return;
    }
    const asking = this.attempt ?? this.look;
    const lastCall = (asking?.sentAt ?? -Infinity) + GRACE;
    if (now() < lastCall) {
      waiter.impatient = true;
      this.expireAt(waiter, lastCall);
      return;
    }
    const silence = asking === undefined ? undefined : unanswered(this.name, asking.sentAt);
    this.leave(waiter);
    const holder = this.tenure?.owner ?? this.lastHolder;
    waiter.refuse(this.lastFailure ?? silence ?? { busy: true, holder });
  }

  /** Whoever leaves takes nothing along: the line goes on for the next, and the last one takes its request back. */
  leave(waiter: Waiter): void {
    this.remove(waiter);
    if (this.length > 0) return;
    if (this.attempt !== undefined) {
      this.attempt.abandoned = true;
      void this.takeBack(this.attempt, this.attempt.terms.leaseTime);
    }
    this.wake();
  }

  answered(waiter: Waiter): void {
    this.remove(waiter);
  }

  private remove(waiter: Waiter): void {
    this.waiters?.delete(waiter);
    if (this.waiters?.size === 0) this.waiters = undefined;
  }

  /** @returns whether messages can be heard now. */
  private async listen(): Promise<boolean> {
    if (this.subscription?.active === true) return true;
    this.subscribing ??= this.subscribe().finally(() => {
      this.subscribing = undefined;
    });
    return await this.subscribing;
  }

  private async subscribe(): Promise<boolean> {
    this.subscription?.close();
    this.subscription = undefined;
    try {
      const subscription = await this.context.store.subscribe(this.name, () => {
        this.hear();
      });
      if (this.contending) this.subscription = subscription;
      else subscription.close();
      return subscription.active;
    } catch {
      // Without messages the line polls; the store's own reports tell of the outage.
      return false;
    }
  }

  /** A release, or messages may have been missed. */
  private hear(): void {
    const { tenure } = this;
    // A hold that goes on is not what has been released. The message of the release before it may be this late.
    if (tenure !== undefined && now() - tenure.grantedAt > MESSAGE_ROUND) void this.lookAt(tenure);
    this.wake();
  }

  private wake(): void {
    this.woken = true;
    this.resume?.();
  }

  private sleepUntil(moment: number): Promise<void> {
    if (this.woken) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = moment === Infinity ? undefined : timerAt(moment, () => this.resume?.());
      this.resume = () => {
        clearTimeout(timer);
        this.resume = undefined;
        resolve();
      };
    });
  }

  private rest(): void {
    if (this.contending || this.tenure !== undefined || this.length > 0) return;
    this.subscription?.close();
    this.subscription = undefined;
    this.onIdle(this);
  }
}
