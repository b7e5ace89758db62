import { randomUUID } from 'node:crypto';
import { LockClosedError, LockLostError } from '../lock.errors.js';
import type { LockEvent } from '../lock.events.js';
import type { ResolvedLockOptions } from '../lock.options.js';
import type { LockStore, QueueTerms, ReleaseReply } from '../stores/lock-store.js';
import { leaseWithin, now } from './deadline.js';
import { EventStream } from './event-stream.js';
import { GroupLine } from './group-line.js';
import { HoldWatch } from './hold-watch.js';
import { Inbox } from './inbox.js';
import { Preflight } from './preflight.js';
import { Releaser } from '../stores/releaser.js';
import type { QueuedRequest } from './queue-place.js';
import { QueuePlaces } from './queue-places.js';
import { releasedError, Tenure, type TenureHolder, type TenureOrigin, type Terms } from './tenure.js';
import { WaitingLine, type LineContext } from './waiting-line.js';
import type { Busy, TenureKeeper, WaitRequest } from './waiting.js';
import { Watchdog } from './watchdog.js';

export type { StoredHold } from '../stores/lock-store.js';

/** One client of a store, as the store sees it: an id, the locks it holds, and the lines of those who wait here. */
export class LockClient {
  readonly id = randomUUID();
  readonly events = new EventStream();
  /** Those losses that the callers have chosen themselves: fixed leases whose time was over. */
  readonly ranOut = new WeakSet<LockEvent>();
  readonly watchdog: Watchdog;
  readonly preflight: Preflight;
  private readonly releaser: Releaser;
  private readonly lines = new Map<string, WaitingLine>();
  private readonly groupLines = new Map<string, GroupLine>();
  /** What this process holds, and who takes it back. */
  private readonly tenures = new Map<Tenure, TenureKeeper>();
  private readonly inbox: Inbox;
  private readonly holdWatch: HoldWatch;
  private readonly places: QueuePlaces;
  private readonly context: LineContext;
  private sequence = 0;
  // One for all, not one for each of ten thousand locks.
  private readonly onIdle = (line: WaitingLine): void => {
    if (this.lines.get(line.name) === line) this.lines.delete(line.name);
  };
  private readonly onEnd = (tenure: Tenure): void => {
    const keeper = this.tenures.get(tenure);
    this.tenures.delete(tenure);
    this.watchdog.forget(tenure);
    this.holdWatch.ended();
    keeper?.ended(tenure);
    if (tenure.loss !== undefined) this.lost(tenure);
  };
  /** Only what runs under a lock still gets locks, so that no work is cut in half. */
  private draining = false;
  private closed = false;
  private readonly refuses = ({ inside }: WaitRequest): boolean =>
    this.closed || (this.draining && inside?.isUnderLock() !== true);

  constructor(
    readonly store: LockStore,
    readonly options: ResolvedLockOptions,
  ) {
    this.watchdog = new Watchdog(store, (names, error) => {
      this.events.next({ type: 'renewal-failed', names, error });
    });
    this.releaser = new Releaser(store);
    this.context = {
      store,
      releaser: this.releaser,
      localHandoff: options.localHandoff,
      leaseTime: options.leaseTime,
      nextOwner: () => `${this.id}:${String(++this.sequence)}`,
      initialLease: (terms) =>
        terms.renewed ? leaseWithin(terms.leaseTime, options.maxHoldTime) : terms.leaseTime,
      open: (line, terms, origin) => this.open(line, line.name, terms, origin),
      begin: (tenure) => this.begin(tenure),
      giveBack: (tenure, keepFor) => this.giveBack(tenure, keepFor),
      look: async (tenure) => {
        await Promise.all(this.watchdog.look([tenure]));
      },
    };
    this.inbox = new Inbox(
      this.id,
      store,
      (message) => {
        if (message.type === 'lost') this.holdWatch.hear(message.owner);
        else this.places.hear(message);
        if (message.type === 'missed' && message.owner === undefined) this.holdWatch.missed();
      },
      () => {
        this.holdWatch.listening();
      },
    );
    this.holdWatch = new HoldWatch(
      this.tenures,
      this.inbox,
      (tenures) => {
        // One that gets no answer is looked at again with the watchdog's next round.
        for (const looking of this.watchdog.look(tenures)) looking.catch(() => undefined);
      },
      () => {
        for (const tenure of [...this.tenures.keys()]) tenure.catchUp();
        this.watchdog.catchUp();
      },
    );
    this.places = new QueuePlaces(this.inbox, {
      ...this.context,
      store,
      open: (request, origin) => {
        const tenure = this.open(this.places, request.name, request.terms, origin);
        this.places.begun(tenure, request.beside);
        return this.begin(tenure);
      },
    });
    this.preflight = new Preflight(store, (warning) => {
      this.events.next({ type: 'warning', ...warning });
    });
    store.onConnectionChange(({ node, connected, first, error }) => {
      if (first !== true) this.events.next({ type: connected ? 'reconnected' : 'disconnected', node, error });
      if (!connected) return;
      this.preflight.look();
      this.releaser.hurry();
    });
  }

  /** How many local callers wait. */
  get waiting(): number {
    let waiting = 0;
    for (const line of [...this.lines.values(), ...this.groupLines.values()]) waiting += line.length;
    return waiting + this.places.length;
  }

  /** Who acts under the tenures of this process. */
  *holders(): Generator<TenureHolder> {
    for (const { holder } of this.tenures.keys()) if (holder !== undefined) yield holder;
  }

  /** The last token of a lock that this process holds: hand-offs have raised it without telling the store. */
  lastToken(name: string): number | undefined {
    let last: number | undefined;
    for (const tenure of this.tenures.keys()) {
      if (tenure.name === name) last = Math.max(last ?? 0, tenure.fencingToken);
    }
    return last;
  }

  /** How many local callers wait for one lock. */
  waitingFor(name: string): number {
    let waiting = (this.lines.get(name)?.length ?? 0) + this.places.lengthOf(name);
    for (const group of this.groupLines.values()) if (group.names.includes(name)) waiting += group.length;
    return waiting;
  }

  /**
   * Waits for the lock. The tenure that it resolves with belongs to the caller, who has to release it.
   * @throws LockClosedError once the client is closing, and what WaitingLine.join throws
   */
  obtain(name: string, request: WaitRequest): Promise<Tenure | Busy> {
    if (this.refuses(request)) return Promise.reject(new LockClosedError(name));
    return this.lineOf(name).join(request);
  }

  /**
   * As `obtain`, for several names of one place: all or none, in one step. The tenures are in the order of the names.
   */
  async obtainAll(names: readonly string[], request: WaitRequest): Promise<readonly Tenure[] | Busy> {
    if (this.refuses(request)) throw new LockClosedError(names.join(','));
    const key = JSON.stringify(names);
    let group = this.groupLines.get(key);
    if (group === undefined) {
      group = new GroupLine(names, this.store, this.context, (idle) => {
        if (this.groupLines.get(key) === idle) this.groupLines.delete(key);
      });
      this.groupLines.set(key, group);
    }
    const origins = await group.join(request);
    if ('busy' in origins) return origins;
    if (this.closed) {
      // Since they were granted: of what has no tenure yet, nobody else knows.
      const until = now() + request.terms.leaseTime;
      const releases = origins.map(({ owner }, index) =>
        this.releaser.release({ name: names[index] ?? '', owner }, until),
      );
      await Promise.all(releases);
      throw new LockClosedError(names.join(','));
    }
    return origins.map((origin, index) => {
      const line = this.lineOf(names[index] ?? '');
      const tenure = this.open(line, line.name, request.terms, origin);
      line.adopt(tenure);
      return this.begin(tenure);
    });
  }

  /** As `obtain`, for the kinds with a queue. */
  obtainQueued(request: QueuedRequest): Promise<Tenure | Busy> {
    if (this.refuses(request)) return Promise.reject(new LockClosedError(request.name));
    return this.places.join(request);
  }

  /**
   * Passes the tenure on or gives it up. Never rejects.
   * @param keepFor ms for which nobody gets it
   * @returns how it was lost, when it turns out that it had been gone before
   */
  async release(tenure: Tenure, keepFor?: number): Promise<LockLostError | undefined> {
    if (!tenure.held) return tenure.loss;
    const { name, owner } = tenure;
    const reason = (await this.tenures.get(tenure)?.release(tenure, keepFor)) ?? 'released';
    if (reason === 'released') return undefined;
    this.events.next({ type: 'lost', name, owner, reason });
    return new LockLostError(name, { reason, owner });
  }

  /** @param mode only the holders on this side of a read-write lock; default all */
  async forceRelease(name: string, mode?: QueueTerms['mode']): Promise<boolean> {
    // Only what is held now: a waiter of this process may get the lock before the answer comes.
    const held = [...this.tenures.keys()].filter(
      (tenure) => tenure.name === name && (mode === undefined || tenure.queue?.mode === mode),
    );
    const released = await this.store.forceRelease(name, mode);
    for (const tenure of held) tenure.lose('deleted');
    return released;
  }

  /**
   * Gives out no new lock and sends away who waits, but for what runs under a lock already. What is held stays held and
   * renewed.
   */
  drain(): void {
    this.draining = true;
    this.sendAway();
  }

  /** Releases what is left, tells those who still hold it, and closes the store. */
  async close(): Promise<void> {
    this.closed = true;
    this.sendAway();
    const left = [...this.tenures].map(async ([tenure, keeper]) => {
      const released = keeper.release(tenure);
      this.events.next({ type: 'lost', name: tenure.name, owner: tenure.owner, reason: 'released' });
      tenure.holder?.onLost(releasedError(tenure, new LockClosedError(tenure.name)));
      await released;
    });
    await Promise.all(left);
    this.inbox.close();
    await this.releaser.close();
    await this.store.close();
    this.events.complete();
  }

  private sendAway(): void {
    for (const line of [...this.lines.values(), ...this.groupLines.values()]) line.sendAway(this.refuses);
    this.places.sendAway(this.refuses);
  }

  private lineOf(name: string): WaitingLine {
    let line = this.lines.get(name);
    if (line === undefined) {
      line = new WaitingLine(name, this.context, this.onIdle);
      this.lines.set(name, line);
    }
    return line;
  }

  /** A holder begins: `maxHoldTime` counts from here, also for the next holder of one tenure. */
  private begin(tenure: Tenure): Tenure {
    if (tenure.terms.renewed) tenure.limit(now() + this.options.maxHoldTime);
    return tenure;
  }

  private open(keeper: TenureKeeper, name: string, terms: Terms, origin: TenureOrigin): Tenure {
    const tenure = new Tenure(name, terms, origin, this.onEnd);
    this.tenures.set(tenure, keeper);
    this.watchdog.watch(tenure, origin.grantedAt);
    this.holdWatch.begun(tenure);
    return tenure;
  }

  private giveBack(tenure: Tenure, keepFor: number | undefined): Promise<ReleaseReply | undefined> {
    const { name, owner, queue, handoffs, terms, doubtful, keptAtMostUntil } = tenure;
    const fencingToken = handoffs > 0 ? tenure.fencingToken : undefined;
    const until = Math.max(now() + terms.leaseTime, keptAtMostUntil);
    const leaseTime = this.context.initialLease(terms);
    const request = { name, owner, leaseTime, queue, fencingToken, keepFor };
    const released = this.releaser.release(request, until, {
      insist: doubtful,
      onFailure: (error) => {
        this.events.next({ type: 'release-failed', name, owner, error });
      },
    });
    tenure.end();
    return released;
  }

  private lost(tenure: Tenure): void {
    const { name, owner, terms, loss, fencingToken, queue, keptUntil, doubtful } = tenure;
    const reason = loss?.reason ?? 'expired';
    const event: LockEvent = { type: 'lost', name, owner, reason };
    if (tenure.ranOut) this.ranOut.add(event);
    this.events.next(event);
    // The store may still have it, or get it back with a renewal that was under way. A fixed lease ends there by itself.
    const endsByItself = !terms.renewed && queue === undefined && keptUntil < now();
    const gone = endsByItself || reason === 'taken' || reason === 'deleted';
    if (!gone || doubtful) {
      const until = Math.max(now() + terms.leaseTime, keptUntil);
      const request = { name, owner, leaseTime: this.context.initialLease(terms), fencingToken, queue };
      void this.releaser.release(request, until, { insist: doubtful });
    }
  }
}
