import { LockClosedError } from '../../api/errors.js';
import type { AcquireRequest, QueueTerms, ReleaseReply, StoreQueues } from '../../store/lock-store.js';
import { now } from '../holding/deadline.js';
import { MESSAGE_ROUND } from '../holding/hold-look.js';
import { type Acquisition } from './acquisition.js';
import { answerOf, type LockTerms, type Sent } from './request.js';
import { AskAndListen } from './ask-and-listen.js';
import type { LockClient } from '../lock-client.js';
import { QueueWait } from './queue-wait.js';
import { ReleaseListener } from './release-listener.js';
import type { Tenure, TenureOrigin } from '../holding/tenure.js';
import { Waiter } from './waiter.js';
import { LocalTurns } from './local-turns.js';
import { type Busy, busyWith, GRACE, unanswered, type WaitRequest } from './waiting.js';

/**
 * The callers of one process for one lock, first come first served. One entry in the store queue represents all of
 * them, so 100 waiters send as few commands as one. For the kinds that promise an order across processes, each caller
 * has its own queue.
 *
 * While this process holds the lock, it takes the entry with the release of the hold. The store answers callers that
 * want an earlier answer, because the hold may exist in this process only.
 */
export class LocalQueue extends LocalTurns {
  /** The requests of the callers. Set before the first one is sent: a store of the application may run code that uses this queue. */
  acquisition: Acquisition | undefined;
  /** Made for the first waiter that needs a subscription to releases. */
  private releases: ReleaseListener | undefined;
  /**
   * Whether this process has just released the lock while other callers of it wait. It asks again only after its own
   * release message has arrived, so that all processes compete as equals.
   */
  private yielding = false;
  private lastHolder: string | undefined;
  attempts = 0;

  constructor(
    readonly terms: LockTerms,
    client: LockClient,
    private readonly onIdle: (queue: LocalQueue) => void,
  ) {
    super(client);
  }

  get name(): string {
    return this.terms.name;
  }

  get commands(): number {
    return this.attempts + this.looks;
  }

  /** The last known owner of the lock. */
  get holder(): string | undefined {
    return this.busy(this.inTheWay).holder;
  }

  /** The reason for the missing answer to the waiters. */
  get failure(): Error | undefined {
    const obstacle = this.acquisition?.obstacle;
    return obstacle instanceof Error ? obstacle : undefined;
  }

  /** The moment of the callers' first request for the lock. */
  get askingSince(): number | undefined {
    return this.acquisition?.createdAt;
  }

  /** Lease of the first waiter, ms; undefined if none is left. */
  get wantedLease(): number | undefined {
    const { head } = this;
    return head && this.client.initialLease(head.terms);
  }

  /** Whether the kind promises the order of callers, and not only of processes. */
  get isByArrival(): boolean {
    const { queue } = this.terms;
    return queue !== undefined && queue.kind !== 'lock';
  }

  /** Whether the first request must wait for a first subscription. */
  get needsMessages(): boolean {
    return this.isByArrival && this.wait && this.client.queueMessages.untried;
  }

  /**
   * Adds a waiter. Resolves with the tenure, or with Busy after the wait time.
   * @throws LockAbortedError, LockUnavailableError, LockKindMismatchError, LockClosedError
   */
  join(request: WaitRequest): Promise<Tenure | Busy> {
    return new Promise((resolve, reject) => {
      const waiter = new Waiter(this, request, resolve, reject);
      this.add(waiter);
      if (this.tenure?.user !== undefined) waiter.waitsFor(this.tenure.owner);
      // A caller that does not wait needs an answer to a request that was sent after its call.
      if (waiter.impatient) this.acquisition?.lookAgain();
      this.goOn();
      waiter.limit();
    });
  }

  protected giveUp(tenure: Tenure): Promise<ReleaseReply | undefined> {
    const { returns, queueMessages, store } = this.client;
    const { queues } = store;
    // A process that took the lock as one of several has an older acquisition, which keeps its turn.
    if (handsOver(queues) && this.acquisition === undefined && this.wait && queueMessages.isSubscribed) {
      const acquisition = this.makeAcquisition();
      const { nextOwner } = acquisition;
      const askedAt = now();
      const sent = { ...nextOwner, askedAt, takesEntry: true, wasSubscribed: this.isSubscribed };
      const asked = { name: this.name, leaseTime: nextOwner.leaseTime };
      this.attempts++;
      const { released, next } = returns.passOn(tenure, (request) => queues.handOver(request, nextOwner));
      void acquisition.start({ ...sent, isJoint: true, reply: answerOf(asked, askedAt, () => next) });
      return released;
    }
    this.yielding = this.length > 0 && !this.hasQueue;
    return returns.giveBack(tenure);
  }

  sendAway(refused: (request: WaitRequest) => boolean): void {
    for (const waiter of this.waiters) {
      if (!refused(waiter.request)) continue;
      this.leave(waiter);
      waiter.refuse(new LockClosedError(this.name));
    }
  }

  /** Removes a waiter without effect on the others. After the last one, the queue leaves the store queue. */
  leave(waiter: Waiter): void {
    this.remove(waiter);
    this.goOn();
  }

  answered(waiter: Waiter): void {
    this.remove(waiter);
  }

  protected count({ request }: Waiter, change: 1 | -1): void {
    this.client.callers.count(this, request.waitTime > 0, change);
  }

  // The acquisition calls the methods up to `unsubscribe`.

  send(request: AcquireRequest, takesEntry: boolean): Sent {
    this.attempts++;
    const { owner, leaseTime } = request;
    const { isSubscribed: wasSubscribed } = this;
    const askedAt = now();
    const reply = answerOf(request, askedAt, () => this.client.store.acquire(request));
    return { owner, leaseTime, askedAt, takesEntry, wasSubscribed, isJoint: false, reply };
  }

  refused(askedAt: number, busy: Busy): void {
    this.lastHolder = busy.holder;
    for (const waiter of this.waiters) waiter.waitsFor(busy.holder);
    this.refuseImpatient(askedAt, busy);
    this.goOn();
  }

  failed(askedAt: number, error: Error, isFinal: boolean): void {
    if (!isFinal) this.refuseImpatient(askedAt, error);
    else for (const waiter of this.waiters) if (waiter.arrivedAt <= askedAt) waiter.refuse(error);
    this.goOn();
  }

  granted(origin: TenureOrigin): Tenure | undefined {
    const { head } = this;
    if (head === undefined) return undefined;
    const tenure = this.client.open(this, head.terms, origin);
    // The end of another hold may have called code that aborts this caller.
    if (this.head !== head) {
      void this.client.returns.giveBack(tenure);
      return undefined;
    }
    head.grant(this.client.begin(tenure));
    return tenure;
  }

  /** Lets another owner ask, at the place of the present one in the store queue, if that had one. */
  askAnew(arrival: number | undefined): void {
    void this.makeAcquisition(arrival).start();
  }

  acquisitionOver(acquisition: Acquisition): void {
    if (this.acquisition === acquisition) this.acquisition = undefined;
    this.goOn();
  }

  /** Subscribes to the releases of the lock. @returns whether the subscription is active now */
  subscribe(): Promise<boolean> {
    const doubt = () => {
      this.doubt();
    };
    const onRelease = () => {
      doubt();
      this.acquisition?.lookAgain();
    };
    this.releases ??= new ReleaseListener(this.client.store, this.name, onRelease, doubt);
    return this.releases.subscribe();
  }

  /** Called when the store leaves the lock to other owners for a moment. */
  leftToOthers(): void {
    this.releases?.keepWhileNeeded();
  }

  unsubscribe(): void {
    this.releases?.close();
  }

  private get hasQueue(): boolean {
    return this.terms.queue !== undefined;
  }

  private get isSubscribed(): boolean {
    return this.releases?.isSubscribed === true;
  }

  /** Whether a message announces this process's turn after a hold of another process. */
  private get isToldOfTurn(): boolean {
    return this.hasQueue ? this.client.queueMessages.isSubscribed : this.isSubscribed;
  }

  protected goOn(): void {
    if (this.length === 0) {
      this.acquisition?.leave();
      if (this.tenure !== undefined) return;
      this.releases?.close();
      this.onIdle(this);
    } else if (this.tenure?.held === true) {
      // Only a process that subscribed before a release receives the messages after it.
      if (this.wait && !this.isToldOfTurn)
        void (this.hasQueue ? this.client.queueMessages.subscribe() : this.subscribe());
      if (this.hasHurried) this.lookAt(this.tenure);
    } else if (this.acquisition === undefined) {
      const after = this.yielding && this.isSubscribed ? MESSAGE_ROUND : 0;
      this.yielding = false;
      void this.makeAcquisition().start(undefined, after);
    }
  }

  /** The acquisition may be older than a hold that the process took as one of several locks. */
  protected allServed(): void {
    this.acquisition?.leave();
  }

  private makeAcquisition(arrival?: number): Acquisition {
    return (this.acquisition = this.hasQueue ? new QueueWait(this, arrival) : new AskAndListen(this));
  }

  expire(waiter: Waiter): void {
    if (this.tenure?.held === true && !waiter.impatient) {
      // The hold may exist in this process only, so the store is asked before the caller is refused.
      this.hurry(waiter);
      waiter.expireAt(now() + GRACE);
      this.goOn();
      return;
    }
    const silentSince = this.acquisition?.silentSince ?? this.lookedAt;
    const lastCall = (silentSince ?? -Infinity) + GRACE;
    if (now() < lastCall) {
      this.hurry(waiter);
      waiter.expireAt(lastCall);
      return;
    }
    const obstacle = this.acquisition?.obstacle;
    const silence =
      silentSince === undefined
        ? undefined
        : unanswered(this.name, silentSince, this.client.store.outageOf?.(this.name));
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
}

/** Whether the store can release a hold and give another owner an entry in one command. */
const handsOver = (
  queues: StoreQueues | undefined,
): queues is StoreQueues & { handOver: NonNullable<StoreQueues['handOver']> } =>
  queues?.handOver !== undefined;

/** The queue terms of every plain lock. */
export const PLAIN_QUEUE: QueueTerms = { kind: 'lock', mode: 'exclusive', capacity: 1 };
