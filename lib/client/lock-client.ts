import { LockAbortedError, LockClosedError, LockLostError } from '../api/errors.js';
import type { ResolvedLockOptions } from '../api/resolved-options.js';
import { uuid } from '../runtime/runtime.js';
import { Underway } from '../runtime/underway.js';
import type { LockStore } from '../store/lock-store.js';
import type { QueueMessage } from '../store/queue-messages.js';
import { leaseWithin, now, timerAt } from './holding/deadline.js';
import { DeadlockDetector } from './deadlock/deadlock-detector.js';
import { CapturedCalls } from './scope/captured-calls.js';
import { EventStream } from './event-stream.js';
import { HoldWatch } from './holding/hold-watch.js';
import { LeaseBounds } from './holding/lease-bounds.js';
import { Labels } from './scope/labels.js';
import { MessageSubscription } from './waiting/message-subscription.js';
import { Preflight } from './preflight.js';
import { Releaser } from '../store/releaser.js';
import { subscribeToMessages } from '../store/subscribe-to-messages.js';
import { requestAll } from './waiting/group-request.js';
import { LocalCallers } from './waiting/local-callers.js';
import { type LocalQueue, PLAIN_QUEUE } from './waiting/local-queue.js';
import type { StoreWarning } from '../store/store-health.js';
import type { LockTerms } from './waiting/request.js';
import { Acquisitions } from './waiting/acquisitions.js';
import { ReleaseRequests } from './holding/release-requests.js';
import { Returns } from './waiting/returns.js';
import { Tenure, type TenureOrigin, type LeaseTerms } from './holding/tenure.js';
import { Tenures } from './holding/tenures.js';
import { Transfers } from './waiting/transfers.js';
import type { Waiter } from './waiting/waiter.js';
import type { Busy, WaitRequest } from './waiting/waiting.js';
import { Watchdog } from './holding/watchdog.js';

export type { ListedName, QueueTerms, StoredHold, StoredLock, StoreListing } from '../store/lock-store.js';

/** A client of a store: its id, its holds, and the queues of its local waiters. */
export class LockClient {
  readonly id = uuid();
  readonly labels: Labels;
  readonly deadlocks = new DeadlockDetector(this);
  readonly events = new EventStream();
  readonly tenures = new Tenures();
  readonly leaseBounds: LeaseBounds;
  readonly watchdog = new Watchdog(this);
  readonly preflight: Preflight;
  /** Undefined if the store cannot pass holds on. */
  readonly transfers: Transfers | undefined;
  readonly callers = new LocalCallers(this);
  readonly begunWaits = new Underway<Waiter>(now, timerAt, (waiter) => {
    waiter.limitAlone();
  });
  readonly returns = new Returns(this);
  readonly releaseRequests = new ReleaseRequests(this);
  readonly capturedCalls = new CapturedCalls();
  readonly releaser: Releaser;
  readonly queueMessages: MessageSubscription<QueueMessage>;
  readonly holdWatch = new HoldWatch(this);
  readonly acquisitions = new Acquisitions(this);
  readonly plainTerms: Pick<LockTerms, 'queue' | 'ownWriteHold'>;
  private sequence = 0;
  private readonly onEnd = (tenure: Tenure): void => {
    this.tenures.remove(tenure);
    this.watchdog.forget(tenure);
    this.holdWatch.ended();
    tenure.local?.ended(tenure);
    // A closed client leaves its locks in the store until their leases end.
    if (tenure.loss !== undefined && this.state !== 'closed') this.returns.lost(tenure);
    this.onLeft?.();
  };
  state: 'open' | 'closing' | 'closed' = 'open';
  /** While the client closes, only callbacks under a lock get further locks, so that no work stops halfway. */
  readonly refuses = ({ inside }: Pick<WaitRequest, 'inside'>): boolean => {
    if (this.state !== 'closing') return this.state === 'closed';
    const caller = inside?.ofCaller;
    return caller?.isOfCallback() !== true || !caller.isUnderLock();
  };
  /** The clients whose stores close when no callback needs a lock of any of them, with this one. */
  closesWith: readonly LockClient[] = [this];
  /** Called when a lease has ended, while the client closes. */
  onLeft: (() => void) | undefined;

  /** One object for all acquisitions with default terms, because a process may have 10,000 leases. */
  readonly defaultTerms: LeaseTerms;

  constructor(
    readonly store: LockStore,
    readonly options: ResolvedLockOptions,
    /** Timer for holds and for requests of waiters. Wait times have timers of their own. */
    readonly setTimer: typeof timerAt = timerAt,
  ) {
    this.defaultTerms = { leaseTime: options.leaseTime, renewed: true };
    this.leaseBounds = new LeaseBounds(store.leaseLimit, () => this.state !== 'open');
    this.releaser = new Releaser(store);
    const transfer = store.transfer?.bind(store);
    this.transfers = transfer && new Transfers(transfer, this);
    this.labels = new Labels(store, this.id, options.label);
    this.queueMessages = new MessageSubscription(
      (onMessage) => subscribeToMessages(store, this.id, onMessage),
      (message) => {
        if (message.type === 'lost') this.holdWatch.onLost(message.owner, message.forced);
        else if (message.type === 'asked') this.releaseRequests.onMessage(message);
        else this.acquisitions.onMessage(message);
        if (message.type === 'missed' && message.owner === undefined) this.holdWatch.missed();
      },
      () => {
        this.holdWatch.subscribed();
      },
    );
    this.plainTerms = {
      queue: store.queues === undefined ? undefined : PLAIN_QUEUE,
      ownWriteHold: undefined,
    };
    this.preflight = new Preflight(
      store,
      (warning) => {
        this.events.next({ type: 'warning', ...warning });
      },
      options.silencedWarnings,
    );
    store.onConnectionChange(({ node, connected, first, error }) => {
      if (first !== true) this.events.next({ type: connected ? 'reconnected' : 'disconnected', node, error });
      if (!connected) return;
      this.preflight.look();
      this.releaser.hurry();
    });
  }

  get isClosed(): boolean {
    return this.state === 'closed';
  }

  /** Length of the first lease, ms. */
  initialLease({ renewed, leaseTime }: LeaseTerms): number {
    if (!renewed) return leaseTime;
    return leaseWithin(this.leaseBounds.within(leaseTime), this.options.maxHoldTime);
  }

  /** Whether this process has, or may soon have, a hold of the other mode under the same lock. */
  hasOtherMode({ name, owner, queue }: Tenure): boolean {
    if (queue?.kind !== 'read-write') return false;
    return this.tenures.hasOtherMode(name, queue) || this.callers.hasReaderOf(name, owner);
  }

  isOfThisProcess(owner: string): boolean {
    return this.labels.isOwn(owner) || this.labels.isSibling(owner);
  }

  /** Reports allowed but probably unintended use, unless the application silences the code. */
  warn(warning: Pick<StoreWarning, 'code' | 'message'>): void {
    if (this.options.silencedWarnings.includes(warning.code)) return;
    this.events.next({ type: 'warning', node: '', ...warning });
  }

  /** @throws LockClosedError if the client is closing and gives the caller no further lock */
  assertOpen(name: string, request: Pick<WaitRequest, 'inside'>): void {
    if (this.refuses(request)) throw new LockClosedError(name);
  }

  /**
   * Waits for the lock. The caller owns the returned tenure and must release it.
   * @throws LockClosedError once the client is closing, and the errors of LocalQueue.join
   */
  acquire(name: string, request: WaitRequest): Promise<Tenure | Busy> {
    const refusal = this.refusalOf(name, request);
    return refusal ? Promise.reject(refusal) : this.callers.queueOf(name).join(request);
  }

  /** As `acquire`, for several names of one location: all or none, without a wait for a busy one. */
  async acquireAll(names: readonly string[], request: WaitRequest): Promise<readonly Tenure[] | Busy> {
    const refusal = this.refusalOf(names.join(','), request);
    if (refusal !== undefined) throw refusal;
    return await requestAll(this, names, request);
  }

  /** As `acquire`, for the kinds in which each caller has its own entry in the store. */
  acquireQueued(terms: LockTerms, request: WaitRequest): Promise<Tenure | Busy> {
    const refusal = this.refusalOf(terms.name, request);
    return refusal ? Promise.reject(refusal) : this.callers.addQueue(terms).join(request);
  }

  /** The reason to send no request. A multi-lock may begin another step after its abort. */
  private refusalOf(name: string, request: WaitRequest): LockClosedError | LockAbortedError | undefined {
    if (this.refuses(request)) return new LockClosedError(name);
    const { signal } = request;
    return signal?.aborted === true ? new LockAbortedError(name, signal.reason) : undefined;
  }

  /**
   * Hands the tenure off or releases it. Never rejects.
   * @returns how the tenure was lost, if it had already ended in the store
   */
  release(tenure: Tenure): Promise<LockLostError | undefined> {
    if (!tenure.held) return Promise.resolve(tenure.loss);
    const { user, label } = tenure;
    const released = tenure.local?.release(tenure) ?? Promise.resolve(undefined);
    return released.then((reason = 'released') => {
      if (reason === 'released') return undefined;
      const { name, owner, forced } = tenure;
      if (this.acquisitions.wasHeld(name, owner)) return undefined;
      if (user !== undefined) this.events.next({ type: 'lost', name, label, owner, reason, forced });
      return new LockLostError(name, { reason, owner, forced });
    });
  }

  /** The store may send all releases of `run` as one command. */
  together<R>(run: () => R): R {
    const { store } = this;
    return store.together === undefined ? run() : store.together(run);
  }

  /** Asks the store about a hold, and ends the hold if it is gone. Rejects if the store did not answer. */
  async look(tenure: Tenure): Promise<void> {
    await Promise.all(this.watchdog.look([tenure]));
  }

  nextOwner(): string {
    return `${this.id}:${String(++this.sequence)}`;
  }

  /** `maxHoldTime` counts anew for each holder of one tenure. */
  begin(tenure: Tenure): Tenure {
    const { maxHoldTime } = this.options;
    if (tenure.terms.renewed && maxHoldTime < Infinity) tenure.limit(now() + maxHoldTime);
    return tenure;
  }

  /** Opens the tenure that a grant of the store begins. */
  open(queue: LocalQueue, terms: LeaseTerms, origin: TenureOrigin): Tenure {
    const { name, ownWriteHold } = queue.terms;
    const tenure = new Tenure(name, terms, origin, this.onEnd, this.setTimer);
    tenure.local = queue;
    const isInTheWay = ({ isExclusive, owner }: Tenure) => isExclusive && owner !== ownWriteHold;
    const former = this.tenures.of(name).find(isInTheWay);
    this.tenures.add(tenure);
    this.watchdog.watch(tenure, origin.grantedAt);
    this.holdWatch.begun(tenure);
    this.releaseRequests.begun(tenure);
    if (former !== undefined && former.fencingToken > tenure.fencingToken) {
      this.returns.turnDown(tenure);
      // If the store does not answer, the watchdog asks again in its next round.
      void this.look(former).catch(() => undefined);
    } else {
      queue.adopt(tenure);
      former?.lose('taken');
    }
    return tenure;
  }
}
