import { LockClosedError } from '../../api/errors.js';
import { atEndOfTurn } from '../../runtime/runtime.js';
import type { AcquireReply, AcquireRequest, QueueTerms, ReleaseReply } from '../../store/lock-store.js';
import { now } from '../holding/deadline.js';
import { mayHandOff } from './hand-off.js';
import { isOutdated, turnDown } from './outdated-grant.js';
import { HoldLook, type LookAnswer, MESSAGE_ROUND } from '../holding/hold-look.js';
import {
  type Acquisition,
  answerOf,
  asReply,
  isGrantedInTime,
  type LockTerms,
  requestFor,
  type Sent,
} from './acquisition.js';
import { AskAndListen } from './ask-and-listen.js';
import type { QueueClient } from './queue-client.js';
import { QueueWait } from './queue-wait.js';
import { ReleaseListener } from './release-listener.js';
import type { Tenure, TenureOrigin } from '../holding/tenure.js';
import { Waiter, type WaiterQueue } from './waiter.js';
import {
  asError,
  type Busy,
  busyWith,
  GRACE,
  type TenureKeeper,
  unanswered,
  type WaitRequest,
} from './waiting.js';

/**
 * The callers of one process that want one lock, first come first served. One entry in the store queue represents all of
 * them: a hundred waiters cost what one costs. For the kinds whose order is promised across processes, each caller has a
 * queue of its own.
 *
 * Where this process holds the lock, the entry is taken together with its release. A caller that wants an answer before
 * that gets it from the store: the hold may be one that only this process believes in.
 */
export class LocalQueue implements TenureKeeper, WaiterQueue {
  /** In the order of arrival. Made for the first waiter: most queues hold a lock and have no waiter. */
  private waiters: Set<Waiter> | undefined;
  /** The hold of this process, if it has one. */
  private tenure: Tenure | undefined;
  /** The first request of the callers. Most are granted, and need no acquisition. */
  private first: Sent | undefined;
  private acquisition: Acquisition | undefined;
  /** That first request is being sent, and a store of the application may run code that uses this queue. */
  private isSending = false;
  /** Asks about the hold of this process. Made with the first question: most holds end without one. */
  private look: HoldLook | undefined;
  /** Made for the first waiter that needs a subscription to releases. */
  private releases: ReleaseListener | undefined;
  /**
   * This process has just released the lock while other callers of it wait. Its release message arrives first, so that all
   * processes compete as equals.
   */
  private yielding = false;
  private lastHolder: string | undefined;
  /** Several callers have lately wanted the lock at once. */
  private shared = false;
  attempts = 0;
  private looks = 0;

  constructor(
    readonly terms: LockTerms,
    readonly client: QueueClient,
    private readonly onIdle: (queue: LocalQueue) => void,
  ) {}

  get name(): string {
    return this.terms.name;
  }

  get names(): readonly string[] {
    return [this.name];
  }

  get commands(): number {
    return this.attempts + this.looks;
  }

  /** The owner that has the lock, as far as it is known. */
  get holder(): string | undefined {
    return this.busy(this.inTheWay).holder;
  }

  get length(): number {
    return this.waiters?.size ?? 0;
  }

  /** Without the callers that only ask. A caller whose wait time is over counts until it has its answer. */
  get waiting(): number {
    let waiting = 0;
    for (const { request } of this.waiters ?? []) if (request.waitTime > 0) waiting++;
    return waiting;
  }

  /** Since when the first waiter waits, on the monotonic clock; undefined where there is none. */
  get waitingSince(): number | undefined {
    for (const { request, arrivedAt } of this.waiters ?? []) if (request.waitTime > 0) return arrivedAt;
    return undefined;
  }

  /** Why the store has not answered the waiters. */
  get failure(): Error | undefined {
    const obstacle = this.acquisition?.obstacle;
    return obstacle instanceof Error ? obstacle : undefined;
  }

  /** Since when the callers ask the store for the lock. */
  get askingSince(): number | undefined {
    return this.first?.askedAt ?? this.acquisition?.createdAt;
  }

  /** The acquisition of the callers, which goes on with their first request. */
  toAcquisition(): Acquisition | undefined {
    const { first } = this;
    if (first === undefined) return this.acquisition;
    this.first = undefined;
    const acquisition = this.makeAcquisition(first);
    void acquisition.start(first);
    return acquisition;
  }

  /** The lease time that the next caller needs, ms; undefined if no caller is left. */
  get wantedLease(): number | undefined {
    const { head } = this;
    return head && this.client.initialLease(head.terms);
  }

  /** Whether some callers wait. Otherwise the store is only asked. */
  get wait(): boolean {
    return this.hasWaiter({ impatient: false });
  }

  /** The order of the callers is promised, and not only the order of the processes. */
  get isByArrival(): boolean {
    const { queue } = this.terms;
    return queue !== undefined && queue.kind !== 'lock';
  }

  /** Whether the callers have to be subscribed before they ask, and no subscription has been tried yet. */
  get needsMessages(): boolean {
    return this.isByArrival && this.wait && this.client.queueMessages.untried;
  }

  /**
   * Adds a waiter. Resolves with the tenure, or Busy when the wait time is over.
   * @throws LockAbortedError, LockUnavailableError, LockKindMismatchError, LockClosedError
   */
  join(request: WaitRequest): Promise<Tenure | Busy> {
    return new Promise((resolve, reject) => {
      const waiter = new Waiter(this, request, resolve, reject);
      this.shared ||= this.length > 0 || this.tenure !== undefined;
      (this.waiters ??= new Set()).add(waiter);
      if (this.tenure?.user !== undefined) waiter.waitsFor(this.tenure.owner);
      // A caller that does not wait wants an answer that was given after its request.
      if (waiter.impatient) this.toAcquisition()?.lookAgain();
      this.goOn();
      // The request has been sent first, so that the timer does not delay what waits for its reply.
      const { waitTime, answerTime = 0 } = request;
      const time = waitTime > 0 ? waitTime : answerTime;
      if (time > 0 && time < Infinity) this.expireAt(waiter, waiter.arrivedAt + time);
    });
  }

  /**
   * Gives the tenure to the next waiter without asking the store, or back to the store.
   * @returns as Releaser.release
   */
  release(tenure: Tenure): Promise<ReleaseReply | undefined> {
    // The release of a lease that the store had forgotten does not decide which caller is next.
    if (this.tenure !== tenure) return this.client.giveBack(tenure);
    if (tenure.keepFor !== undefined) return this.giveUp(tenure);
    if (this.handOff(tenure)) return Promise.resolve('released');
    if (!this.mayBeWantedSoon(tenure)) return this.giveUp(tenure);
    return this.handOffSoon(tenure).then((isOver) => (isOver ? 'released' : this.giveUp(tenure)));
  }

  private giveUp(tenure: Tenure): Promise<ReleaseReply | undefined> {
    const { passOn, queueMessages } = this.client;
    // A process that has taken the lock together with others has an acquisition from before, which keeps its turn.
    if (passOn !== undefined && !this.isAsking && this.wait && queueMessages.isSubscribed) {
      const acquisition = this.makeAcquisition();
      const { nextOwner } = acquisition;
      const sent = { ...nextOwner, askedAt: now(), takesEntry: true, wasSubscribed: this.isSubscribed };
      this.attempts++;
      const { released, next } = passOn(tenure, nextOwner);
      void acquisition.start({ ...sent, isJoint: true, reply: next.then(asReply, asError) });
      return released;
    }
    this.yielding = this.length > 0 && !this.hasQueue;
    return this.client.giveBack(tenure);
  }

  /** The store has granted the lock. A hold from before, which the process still believes in, is gone. */
  adopt(tenure: Tenure): void {
    const former = this.tenure;
    if (former !== undefined && isOutdated(tenure, former)) {
      turnDown(tenure, this.client.releaser);
      this.lookAt(former);
      return;
    }
    this.tenure = tenure;
    this.look?.ended();
    former?.lose('taken');
  }

  /** The tenure is over, lost or released. */
  ended(tenure: Tenure): void {
    if (this.tenure !== tenure) return;
    this.tenure = undefined;
    this.look?.ended();
    this.goOn();
  }

  sendAway(refused: (request: WaitRequest) => boolean): void {
    for (const waiter of this.waiters ?? []) {
      if (!refused(waiter.request)) continue;
      this.leave(waiter);
      waiter.refuse(new LockClosedError(this.name));
    }
  }

  /** Gives the same answer to all waiters. */
  refuseAll(answer: Busy): void {
    for (const waiter of this.waiters ?? []) waiter.refuse(answer);
  }

  /** A waiter that leaves changes nothing for the others. The last one gives up the entry. */
  leave(waiter: Waiter): void {
    this.remove(waiter);
    this.goOn();
  }

  answered(waiter: Waiter): void {
    this.remove(waiter);
  }

  // Called by the acquisition.

  send(request: AcquireRequest, takesEntry: boolean): Sent {
    this.attempts++;
    const { owner, leaseTime } = request;
    const { isSubscribed: wasSubscribed } = this;
    const askedAt = now();
    const reply = answerOf(this.client.store, request);
    return { owner, leaseTime, askedAt, takesEntry, wasSubscribed, isJoint: false, reply };
  }

  refused(askedAt: number, busy: Busy): void {
    this.lastHolder = busy.holder;
    for (const waiter of this.waiters ?? []) waiter.waitsFor(busy.holder);
    this.refuseImpatient(askedAt, busy);
    this.goOn();
  }

  failed(askedAt: number, error: Error, isFinal: boolean): void {
    if (!isFinal) this.refuseImpatient(askedAt, error);
    else for (const waiter of this.waiters ?? []) if (waiter.arrivedAt <= askedAt) waiter.refuse(error);
    this.goOn();
  }

  granted(origin: TenureOrigin): Tenure | undefined {
    const { head } = this;
    if (head === undefined) return undefined;
    const tenure = this.client.open(this, head.terms, origin);
    if (!this.isByArrival) this.adopt(tenure);
    // The end of another hold may have told code that aborts this caller.
    if (this.head !== head) {
      void this.client.giveBack(tenure);
      return undefined;
    }
    head.grant(this.client.begin(tenure));
    return tenure;
  }

  acquisitionOver(acquisition: Acquisition): void {
    if (this.acquisition === acquisition) this.acquisition = undefined;
    this.goOn();
  }

  /** Subscribes to the releases of the lock. @returns whether the subscription is active now */
  subscribe(): Promise<boolean> {
    const doubt = () => {
      // The hold of this process may be the one that has been released.
      if (this.tenure !== undefined) this.looking.doubt(this.tenure);
    };
    const onRelease = () => {
      doubt();
      this.toAcquisition()?.lookAgain();
    };
    this.releases ??= new ReleaseListener(this.client.store, this.name, onRelease, doubt);
    return this.releases.open();
  }

  /** The store leaves the lock to other owners for a moment. */
  leftToOthers(): void {
    this.releases?.keepWhileNeeded();
  }

  unsubscribe(): void {
    this.releases?.close();
  }

  private get hasQueue(): boolean {
    return this.terms.queue !== undefined;
  }

  private get isAsking(): boolean {
    return this.isSending || this.first !== undefined || this.acquisition !== undefined;
  }

  private get isSubscribed(): boolean {
    return this.releases?.isActive === true;
  }

  /** Whether a message tells this process when its turn comes after another process had the lock. */
  private get isToldOfTurn(): boolean {
    return this.hasQueue ? this.client.queueMessages.isSubscribed : this.isSubscribed;
  }

  /** Makes sure that the waiters wait for something. */
  private goOn(): void {
    if (this.length === 0) {
      this.toAcquisition()?.leave();
      if (this.tenure !== undefined) return;
      this.releases?.close();
      this.onIdle(this);
    } else if (this.tenure?.held === true) {
      // Only a process that has subscribed before the release receives the messages that follow it.
      if (this.wait && !this.isToldOfTurn)
        void (this.hasQueue ? this.client.queueMessages.subscribe() : this.subscribe());
      if (this.hasWaiter({ impatient: true })) this.lookAt(this.tenure);
    } else if (!this.isAsking) {
      const after = this.yielding && this.isSubscribed ? MESSAGE_ROUND : 0;
      this.yielding = false;
      if (after > 0 || this.needsMessages) void this.makeAcquisition().start(undefined, after);
      else this.askFirst();
    }
  }

  private askFirst(): void {
    const { client } = this;
    const takesEntry = this.hasQueue && this.wait && client.queueMessages.isSubscribed;
    const owner = client.nextOwner();
    const entry = takesEntry ? { arrival: undefined } : undefined;
    this.isSending = true;
    const first = this.send(requestFor(this.terms, owner, this.wantedLease ?? 0, entry), takesEntry);
    this.first = first;
    this.isSending = false;
    // Its turn may come before the answer does.
    if (takesEntry) client.acquisitions.add(owner, this);
    void first.reply.then((reply) => {
      if (this.first === first) this.firstAnswered(first, reply);
    });
    if (this.length === 0) this.goOn();
  }

  private firstAnswered(first: Sent, reply: AcquireReply | Error): void {
    const { owner, leaseTime, askedAt: grantedAt, takesEntry: stood } = first;
    if (!isGrantedInTime(first, reply) || leaseTime !== this.wantedLease) {
      this.toAcquisition();
      return;
    }
    this.first = undefined;
    if (stood) this.client.acquisitions.remove(owner);
    const { fencingToken, rivals } = reply;
    this.granted({ owner, grantedAt, leaseTime, fencingToken, queue: this.terms.queue, rivals, stood });
    this.goOn();
  }

  private makeAcquisition(first?: Sent): Acquisition {
    return (this.acquisition = this.hasQueue ? new QueueWait(this, first) : new AskAndListen(this, first));
  }

  private handOff(tenure: Tenure, user = tenure.user): boolean {
    const { head } = this;
    if (head === undefined || !mayHandOff(tenure, head.terms, this.client.localHandoff)) return false;
    if (tenure.user !== undefined) head.waitsFor(tenure.owner);
    tenure.user = undefined;
    // The holder that was asked has released it.
    tenure.asker = undefined;
    tenure.handoffs++;
    tenure.fencingToken++;
    head.grant(this.client.begin(tenure));
    // Before the next owner goes on: its caller waits for the promise of its grant.
    user?.onHandedOff();
    // The acquisition is from before the process got the lock together with others.
    if (this.length === 0) this.toAcquisition()?.leave();
    return true;
  }

  private mayBeWantedSoon(tenure: Tenure): boolean {
    return (
      this.shared && this.head === undefined && mayHandOff(tenure, tenure.terms, this.client.localHandoff)
    );
  }

  /**
   * A caller that comes back at once arrives only after the promises of its release have settled.
   * @returns whether nothing is left to give up
   */
  private async handOffSoon(tenure: Tenure): Promise<boolean> {
    const { user } = tenure;
    tenure.user = undefined;
    await new Promise<void>((resolve) => {
      atEndOfTurn(resolve);
    });
    this.shared = this.length > 0;
    return !tenure.held || this.handOff(tenure, user);
  }

  private get head(): Waiter | undefined {
    // Mostly there is none, and no iterator is made.
    if (this.waiters !== undefined) for (const waiter of this.waiters) return waiter;
    return undefined;
  }

  private get looking(): HoldLook {
    const look = (tenure: Tenure) => {
      this.looks++;
      return this.client.look(tenure);
    };
    return (this.look ??= new HoldLook(look, (tenure, sentAt, answer) => {
      this.looked(tenure, sentAt, answer);
    }));
  }

  private lookAt(tenure: Tenure): void {
    void this.looking.lookAt(tenure);
  }

  private looked(tenure: Tenure, sentAt: number, answer: LookAnswer): void {
    if (this.tenure === tenure && tenure.held) this.refuseImpatient(sentAt, answer);
    // Where another hold has taken the place of that one meanwhile, the callers are owed an answer about the other.
    this.goOn();
  }

  /** Answers the callers that asked before `since` and do not wait any longer. */
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
      // Not because of a hold that only this process may believe in: the store is asked first.
      waiter.impatient = true;
      this.expireAt(waiter, now() + GRACE);
      this.goOn();
      return;
    }
    const silentSince = this.first?.askedAt ?? this.acquisition?.silentSince ?? this.look?.asking?.sentAt;
    const lastCall = (silentSince ?? -Infinity) + GRACE;
    if (now() < lastCall) {
      waiter.impatient = true;
      this.expireAt(waiter, lastCall);
      return;
    }
    const obstacle = this.acquisition?.obstacle;
    const silence = silentSince === undefined ? undefined : unanswered(this.name, silentSince);
    this.leave(waiter);
    if (obstacle instanceof Error) waiter.refuse(obstacle);
    else waiter.refuse(silence ?? this.busy(obstacle));
  }

  private get inTheWay(): Busy | undefined {
    const obstacle = this.acquisition?.obstacle;
    return obstacle instanceof Error ? undefined : obstacle;
  }

  private busy(inTheWay: Busy | undefined): Busy {
    const { tenure } = this;
    if (tenure !== undefined) return busyWith(tenure.owner, tenure.remainingTime);
    return busyWith(inTheWay?.holder ?? this.lastHolder, inTheWay?.remainingTime);
  }

  private remove(waiter: Waiter): void {
    this.waiters?.delete(waiter);
    if (this.waiters?.size === 0) this.waiters = undefined;
  }
}

/** The queue terms with which a plain lock is asked for. */
export const PLAIN_QUEUE: QueueTerms = { kind: 'lock', mode: 'exclusive', capacity: 1 };
