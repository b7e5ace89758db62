import { LockAbortedError, LockClosedError, LockLostError } from '../api/errors.js';
import { onOneLine } from '../runtime/text.js';
import type { ResolvedLockOptions } from '../api/options.js';
import { uuid } from '../runtime/runtime.js';
import type { LockStore, QueueTerms, TransferRequest } from '../store/lock-store.js';
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
import { LocalCallers } from './waiting/local-callers.js';
import { PLAIN_QUEUE } from './waiting/local-queue.js';
import type { QueueClient } from './waiting/queue-client.js';
import type { StoreWarning } from '../store/store-health.js';
import type { LockTerms } from './waiting/acquisition.js';
import { lockOrder } from './scope/order-graph.js';
import { Acquisitions } from './waiting/acquisitions.js';
import { ReleaseRequests } from './holding/release-requests.js';
import { Returns } from './waiting/returns.js';
import { releasedError, Tenure, type TenureOrigin, type LeaseTerms } from './holding/tenure.js';
import { Tenures } from './holding/tenures.js';
import { type Transferred, Transfers } from './waiting/transfers.js';
import type { Busy, TenureKeeper, WaitRequest } from './waiting/waiting.js';
import { Watchdog } from './holding/watchdog.js';

export type { ListedName, QueueTerms, StoredHold, StoredLock, StoreListing } from '../store/lock-store.js';

type Refused = Extract<Transferred, { granted: false }>;

/** One client of a store, as the store sees it: an id, the locks that it holds, and the queues of its local waiters. */
export class LockClient {
  readonly id = uuid();
  readonly labels: Labels;
  readonly deadlocks: DeadlockDetector;
  readonly events = new EventStream();
  readonly tenures = new Tenures();
  readonly leaseBounds: LeaseBounds;
  readonly watchdog: Watchdog;
  readonly preflight: Preflight;
  /** Undefined where the store does not pass holds on. */
  readonly transfers: Transfers | undefined;
  readonly callers: LocalCallers;
  readonly returns: Returns;
  readonly releaseRequests: ReleaseRequests;
  readonly capturedCalls = new CapturedCalls();
  readonly releaser: Releaser;
  private readonly queueMessages: MessageSubscription<QueueMessage>;
  private readonly holdWatch: HoldWatch;
  private readonly acquisitions: Acquisitions;
  private readonly plainTerms: Pick<LockTerms, 'queue' | 'ownWriteHold'>;
  private readonly queueClient: QueueClient;
  private sequence = 0;
  private readonly onEnd = (tenure: Tenure): void => {
    const keeper = this.tenures.keeperOf(tenure);
    this.tenures.remove(tenure);
    this.watchdog.forget(tenure);
    this.holdWatch.ended();
    this.acquisitions.ended(tenure);
    // A replica that takes over may still have the entry.
    if (tenure.stood) this.acquisitions.departed({ ...this.returns.requestOf(tenure), keepFor: undefined });
    keeper?.ended(tenure);
    // A closed client leaves its locks to their own end in the store.
    if (tenure.loss !== undefined && this.state !== 'closed') this.returns.lost(tenure);
    this.onLeft?.();
  };
  private state: 'open' | 'closing' | 'closed' = 'open';
  /** While it closes, only code that runs under a lock still gets locks, so that no work stops halfway. */
  readonly refuses = ({ inside }: Pick<WaitRequest, 'inside'>): boolean =>
    this.state !== 'open' && (this.state === 'closed' || inside?.isUnderLock() !== true);
  /** Called when a lease has ended, while the client closes. */
  onLeft: (() => void) | undefined;

  /** Of all acquisitions that ask for no others: one object, and not one for each of ten thousand leases. */
  readonly defaultTerms: LeaseTerms;

  constructor(
    readonly store: LockStore,
    readonly options: ResolvedLockOptions,
    /** For the holds, and for the requests of waiters. The end of a wait time has a timer of its own. */
    readonly setTimer: typeof timerAt = timerAt,
  ) {
    this.defaultTerms = { leaseTime: options.leaseTime, renewed: true };
    this.leaseBounds = new LeaseBounds(store.leaseLimit, () => this.state !== 'open');
    this.watchdog = new Watchdog(
      store,
      this.leaseBounds,
      (tenures, error) => {
        const names = tenures.map(({ name }) => name);
        const labels = tenures.map(({ label }) => label);
        this.events.next({ type: 'renewal-failed', names, labels, error });
      },
      setTimer,
    );
    this.releaser = new Releaser(store);
    const transfer = store.transfer?.bind(store);
    this.transfers = transfer && new Transfers(transfer, this);
    this.labels = new Labels(store, this.id, options.label);
    this.deadlocks = new DeadlockDetector(store, {
      clientId: this.id,
      label: options.label,
      onNotesRefused: ({ cause }) => {
        this.warn({
          code: 'deadlock-notes',
          message: `Deadlocks over processes are not found: the store refuses the note of waits (${onOneLine(cause instanceof Error ? cause.message : '')})`,
        });
      },
    });
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
    this.holdWatch = new HoldWatch(
      this.tenures,
      this.queueMessages,
      (tenures) => this.watchdog.look(tenures),
      () => {
        for (const tenure of this.tenures.all) tenure.catchUp();
        this.watchdog.catchUp();
      },
      setTimer,
      () => {
        this.labels.keep();
        for (const user of this.tenures.users()) user.onLongHold?.();
      },
    );
    const acquisitions = (this.acquisitions = new Acquisitions(
      this.releaser,
      () => {
        this.labels.keep();
      },
      (tenure) => {
        // A tenure that gets no answer is looked at again with the watchdog's next round.
        void this.queueClient.look(tenure).catch(() => undefined);
      },
    ));
    this.releaseRequests = new ReleaseRequests(this);
    const returns = (this.returns = new Returns(this));
    const { queues } = store;
    const handOver = queues?.handOver?.bind(queues);
    this.plainTerms = {
      queue: queues === undefined ? undefined : PLAIN_QUEUE,
      ownWriteHold: undefined,
    };
    this.queueClient = {
      store,
      queueMessages: this.queueMessages,
      setTimer,
      releaser: this.releaser,
      localHandoff: options.localHandoff,
      leaseTime: options.leaseTime,
      nextOwner: () => `${this.id}:${String(++this.sequence)}`,
      initialLease: (terms) => this.initialLease(terms),
      acquisitions,
      open: (queue, terms, origin) => {
        const { name, ownWriteHold, queue: asked } = queue.terms;
        const tenure = this.open(queue, name, terms, origin);
        if (asked !== undefined && asked !== PLAIN_QUEUE) acquisitions.begun(tenure, ownWriteHold);
        return tenure;
      },
      begin: (tenure) => this.begin(tenure),
      giveBack: (tenure) => returns.giveBack(tenure),
      passOn: handOver && ((tenure, next) => returns.passOn(tenure, (request) => handOver(request, next))),
      look: async (tenure) => {
        await Promise.all(this.watchdog.look([tenure]));
      },
    };
    this.callers = new LocalCallers(store, this.queueClient, this.plainTerms);
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

  /** The lease that is asked for first, ms. */
  initialLease({ renewed, leaseTime }: LeaseTerms): number {
    if (!renewed) return leaseTime;
    return leaseWithin(this.leaseBounds.within(leaseTime), this.options.maxHoldTime);
  }

  /** Whether a reader of this process is beside its writer, or is about to be: for one of the two holds. */
  hasOtherMode({ name, owner, queue }: Tenure): boolean {
    if (queue?.kind !== 'read-write') return false;
    return this.tenures.hasOtherMode(name, queue) || this.callers.hasReaderOf(owner);
  }

  isOfThisProcess(owner: string): boolean {
    return this.labels.isOwn(owner) || this.labels.isSibling(owner);
  }

  /** Tells of what is allowed and probably not meant, unless its code is silenced. */
  warn(warning: Pick<StoreWarning, 'code' | 'message'>): void {
    if (this.options.silencedWarnings.includes(warning.code)) return;
    this.events.next({ type: 'warning', node: '', ...warning });
  }

  /** @throws LockClosedError where a caller inside of that scope gets no lock any more, because the client is closing */
  assertOpen(name: string, request: Pick<WaitRequest, 'inside'>): void {
    if (this.refuses(request)) throw new LockClosedError(name);
  }

  /**
   * Waits for the lock. The tenure that it resolves with belongs to the caller, which has to release it.
   * @throws LockClosedError once the client is closing, and what LocalQueue.join throws
   */
  acquire(name: string, request: WaitRequest): Promise<Tenure | Busy> {
    const refusal = this.refusalOf(name, request);
    return refusal ? Promise.reject(refusal) : this.callers.queueOf(name).join(request);
  }

  /**
   * Takes several names of one location, all or none, in one step. Does not wait for a name that is busy, only for a store
   * that does not answer. The tenures are in the order of the names.
   */
  async acquireAll(names: readonly string[], request: WaitRequest): Promise<readonly Tenure[] | Busy> {
    const refusal = this.refusalOf(names.join(','), request);
    if (refusal !== undefined) throw refusal;
    const origins = await this.callers.addGroup(names).send(request);
    if ('busy' in origins) return origins;
    if (this.refuses(request)) {
      // The client was closed after the grant. No other code knows a grant that has no tenure yet.
      const until = now() + request.terms.leaseTime;
      const releases = origins.map(({ owner }, index) =>
        this.releaser.release({ ...this.plainTerms, name: names[index] ?? '', owner }, until),
      );
      await Promise.all(releases);
      throw new LockClosedError(names.join(','));
    }
    return origins.map((origin, index) => {
      const keeper = this.callers.queueOf(names[index] ?? '');
      const tenure = this.open(keeper, keeper.name, request.terms, origin);
      keeper.adopt(tenure);
      return this.begin(tenure);
    });
  }

  /** As `acquire`, for the kinds where each caller has an entry of its own. */
  acquireQueued(terms: LockTerms, request: WaitRequest): Promise<Tenure | Busy> {
    const refusal = this.refusalOf(terms.name, request);
    return refusal ? Promise.reject(refusal) : this.callers.addQueue(terms).join(request);
  }

  /** Why a request is not sent: one step of a multi-lock may follow its abort. */
  private refusalOf(name: string, request: WaitRequest): LockClosedError | LockAbortedError | undefined {
    if (this.refuses(request)) return new LockClosedError(name);
    const { signal } = request;
    return signal?.aborted === true ? new LockAbortedError(name, signal.reason) : undefined;
  }

  /**
   * Hands the tenure off or gives it up. Never rejects.
   * @returns how it was lost, when it turns out that it had been gone before
   */
  release(tenure: Tenure): Promise<LockLostError | undefined> {
    if (!tenure.held) return Promise.resolve(tenure.loss);
    const { user, label } = tenure;
    const released = this.tenures.keeperOf(tenure)?.release(tenure) ?? Promise.resolve(undefined);
    return released.then((reason = 'released') => {
      if (reason === 'released') return undefined;
      const { name, owner, forced } = tenure;
      if (user !== undefined) this.events.next({ type: 'lost', name, label, owner, reason, forced });
      return new LockLostError(name, { reason, owner, forced });
    });
  }

  /** What is given up while `run` runs may travel as one command. */
  together<R>(run: () => R): R {
    const { store } = this;
    return store.together === undefined ? run() : store.together(run);
  }

  /**
   * Passes the tenure on to an owner that no process has yet. It is over here as soon as that is asked for, whatever the
   * answer is: an answer that is lost may have been the consent.
   * @param within ms after which the hold ends if no process resumes it
   * @throws LockUnavailableError when the store did not answer in time; the lock is given up then
   */
  async handOver(
    transfers: Transfers,
    tenure: Tenure,
    within: number,
  ): Promise<Transferred & { readonly owner: string }> {
    const { fencingToken, deadline, doubtful } = tenure;
    const release = this.returns.requestOf(tenure);
    const next = this.queueClient.nextOwner();
    const { name, owner, queue } = release;
    const request = { name, owner, queue, next, leaseTime: within, leastToken: fencingToken + 1 };
    const giveUpAt = Math.min(deadline, now() + this.options.waitTime);
    const passing = transfers.pass(request, giveUpAt, now() + (release.keepFor ?? 0));
    const until = Math.max(now() + within, tenure.keptAtMostUntil);
    this.labels.keep(within);
    tenure.end();
    try {
      const passed = await passing;
      if (doubtful) transfers.giveUp({ ...release, keepFor: undefined }, until);
      return { ...passed, owner: next };
    } catch (error) {
      transfers.giveUp({ ...release, keepFor: tenure.keepFor }, until);
      throw error;
    }
  }

  /**
   * Takes a hold over from an owner that belongs to no process any more.
   * @param queue undefined for a plain lock
   * @param request `leaseTime`: the lease from now on, which is renewed. `keepFor`: the longest time, ms, that can be left of a
   *   `minHoldTime`
   * @throws LockLostError when that owner does not hold the lock
   * @throws LockUnavailableError when the store did not answer in time
   */
  async resume(
    transfers: Transfers,
    queue: QueueTerms | undefined,
    request: Pick<TransferRequest, 'name' | 'owner' | 'leaseTime' | 'leastToken'> &
      Pick<WaitRequest, 'inside'> & { readonly keepFor: number },
  ): Promise<{ readonly tenure: Tenure; readonly date: number } | Refused> {
    const { name, owner, leaseTime, leastToken } = request;
    this.assertOpen(name, request);
    const terms = { leaseTime, renewed: true };
    const granted = this.initialLease(terms);
    const next = this.queueClient.nextOwner();
    const wanted = queue ?? this.plainTerms.queue;
    const asked = { name, owner, next, leaseTime: granted, leastToken, queue: wanted };
    const keepUntil = now() + request.keepFor;
    const giveUpAt = now() + Math.min(this.options.waitTime, leaseTime);
    const passed = await transfers.pass(asked, giveUpAt, keepUntil);
    if (!passed.granted) return passed;
    if (this.refuses(request)) {
      transfers.takeBack(asked, keepUntil);
      throw new LockClosedError(name);
    }
    const { askedAt: grantedAt, fencingToken, isDoubtful, date } = passed;
    const keeper = this.callers.keeperOf({ name, queue });
    const origin = { owner: next, grantedAt, leaseTime: granted, fencingToken, queue: wanted };
    const tenure = this.queueClient.open(keeper, terms, { ...origin, doubtful: isDoubtful });
    if (queue === undefined) keeper.adopt(tenure);
    return { tenure: this.begin(tenure), date };
  }

  /**
   * @param mode only the holders on this side of a read-write lock; undefined for all
   * @param reason is told to the holders
   */
  async forceRelease(
    name: string,
    mode: QueueTerms['mode'] | undefined,
    reason: string | undefined,
  ): Promise<boolean> {
    // Only what is held now: a waiter of this process may get the lock before the answer comes.
    const held = this.tenures
      .of(name)
      .filter(({ queue }) => mode === undefined || (queue !== PLAIN_QUEUE && queue?.mode === mode));
    const forced = { by: this.options.label, reason };
    const released = await this.store.forceRelease(name, mode, forced);
    if (!released) {
      // Nothing has been taken away. A hold that the store does not know has ended before, and a look finds that.
      for (const { owner } of held) this.holdWatch.onLost(owner);
      return false;
    }
    this.events.next({ type: 'force-released', name, reason });
    for (const tenure of held) {
      tenure.forced = forced;
      tenure.lose('deleted');
    }
    return true;
  }

  /** Gives out no new lock and refuses the waiters. Code that already runs under a lock is excepted. */
  stop(onLeft: () => void): void {
    if (this.state === 'open') this.state = 'closing';
    this.onLeft = onLeft;
    this.callers.sendAway(this.refuses);
  }

  /** Whether a lock is held whose callback runs, or whose caller is about to begin. */
  get isInUse(): boolean {
    return this.tenures.all.some(({ user }) => user === undefined || user.isInUse);
  }

  /** Releases the locks under which no callback runs, and tells their holders. */
  async releaseUnused(): Promise<void> {
    const unused = this.tenures.all.filter(({ user }) => user?.isInUse === false);
    await Promise.all(
      unused.map((tenure) => {
        const { user, name, owner, label } = tenure;
        // Not by its keeper, which may leave it for a moment to a caller that comes back at once.
        const released = this.returns.giveBack(tenure);
        this.events.next({ type: 'lost', name, label, owner, reason: 'released' });
        user?.onLost(releasedError(tenure, new LockClosedError(name)));
        return released;
      }),
    );
  }

  /** Leaves the locks whose callback still runs to their own end in the store, tells their holders, and closes the store. */
  async end(): Promise<void> {
    this.state = 'closed';
    this.callers.sendAway(this.refuses);
    for (const tenure of this.tenures.all) {
      const { name, owner, label } = tenure;
      this.events.next({ type: 'lost', name, label, owner, reason: 'expired' });
      tenure.lose('expired', new LockClosedError(name));
    }
    await this.transfers?.settled();
    this.labels.close();
    this.deadlocks.close();
    lockOrder.forget(this.id);
    this.queueMessages.close();
    await this.releaser.close();
    await this.store.close();
    this.events.complete();
  }

  /** A holder begins: `maxHoldTime` counts from here, also for the next holder of one tenure. */
  private begin(tenure: Tenure): Tenure {
    const { maxHoldTime } = this.options;
    if (tenure.terms.renewed && maxHoldTime < Infinity) tenure.limit(now() + maxHoldTime);
    return tenure;
  }

  private open(keeper: TenureKeeper, name: string, terms: LeaseTerms, origin: TenureOrigin): Tenure {
    const tenure = new Tenure(name, terms, origin, this.onEnd, this.setTimer);
    this.tenures.add(tenure, keeper);
    this.watchdog.watch(tenure, origin.grantedAt);
    this.holdWatch.begun(tenure);
    this.releaseRequests.begun(tenure);
    return tenure;
  }
}
