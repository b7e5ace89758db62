import { isLockUnavailableError, LockClosedError, type LockUnavailableError } from '../lock.errors.js';
import type { AcquireReply, LockStore, ReleaseReply } from '../stores/lock-store.js';
import { deadlineOf, now, timerAt } from './deadline.js';
import { mayHandOff } from './hand-off.js';
import { HoldLook, type LookAnswer, type LookContext, MESSAGE_ROUND } from './hold-look.js';
import { LineEar } from './line-ear.js';
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

export interface LineContext extends WaitingContext, LookContext {
  readonly store: LineStore;
  /** The module's, ms */
  readonly leaseTime: number;
  readonly localHandoff: number;
  open(line: WaitingLine, terms: Terms, origin: TenureOrigin): Tenure;
  /** A holder begins. */
  begin(tenure: Tenure): Tenure;
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
  /** Asks about the hold of this process. Made with the first question: most holds are over without one. */
  private look: HoldLook | undefined;
  private contending = false;
  /** Made when somebody waits who has to hear. */
  private ear: LineEar | undefined;
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
    if (former !== undefined && former.fencingToken > tenure.fencingToken) {
      this.turnDown(tenure, former);
      return;
    }
    this.tenure = tenure;
    this.look?.ended();
    former?.lose('taken');
  }

  /**
   * The answers may come in another order than the grants: the greater token is the later grant. Tokens can also go back,
   * where the store has lost them and its clock has been set back. Then the store has this grant, which nobody is going
   * to use, and the other one is gone.
   */
  private turnDown(tenure: Tenure, former: Tenure): void {
    const { name, owner, terms, fencingToken } = tenure;
    tenure.lose('taken');
    void this.context.releaser.release({ name, owner, fencingToken }, now() + terms.leaseTime);
    this.lookAt(former);
  }

  /** The tenure is over, lost or released. */
  ended(tenure: Tenure): void {
    if (this.tenure !== tenure) return;
    this.tenure = undefined;
    this.look?.ended();
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

  /** Gives all who stand here the same answer. */
  refuseAll(answer: Busy): void {
    for (const waiter of this.waiters ?? []) waiter.refuse(answer);
  }

  private handOff(tenure: Tenure): boolean {
    const { head } = this;
    if (head === undefined || !mayHandOff(tenure, head.terms, this.context.localHandoff)) return false;
    tenure.holder = undefined;
    tenure.handoffs++;
    tenure.fencingToken++;
    head.grant(this.context.begin(tenure));
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
        if (this.hasWaiter({ impatient: true })) this.lookAt(this.tenure);
        this.woken = false;
        await this.sleepUntil(Infinity);
      } else if (this.yielding) {
        this.yielding = false;
        if (this.ear?.listening === true) await this.sleepUntil(now() + MESSAGE_ROUND);
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
      listening: this.ear?.listening === true,
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

  private get looking(): HoldLook {
    return (this.look ??= new HoldLook(this.context, (tenure, sentAt, answer) => {
      this.looked(tenure, sentAt, answer);
    }));
  }

  private lookAt(tenure: Tenure): void {
    void this.looking.lookAt(tenure);
  }

  private looked(tenure: Tenure, sentAt: number, answer: LookAnswer): void {
    if (this.tenure !== tenure || !tenure.held) return;
    this.refuseImpatient(sentAt, answer);
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
    const asking = this.attempt ?? this.look?.asking;
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
  private listen(): Promise<boolean> {
    this.ear ??= new LineEar(this.name, this.context.store, {
      onMessage: () => {
        this.doubt();
        this.wake();
      },
      onListening: () => {
        this.doubt();
      },
    });
    return this.ear.listen();
  }

  /** The hold of this process may be what has been released. */
  private doubt(): void {
    if (this.tenure !== undefined) this.looking.doubt(this.tenure);
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
    this.ear?.close();
    this.onIdle(this);
  }
}
