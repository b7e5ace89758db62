import { Logger, type BeforeApplicationShutdown, type OnApplicationShutdown } from '@nestjs/common';
import type { Observable } from 'rxjs';
import { closeTogether } from '../client/holding/closing.js';
import { idleTimerAt, timerAt } from '../client/holding/deadline.js';
import { StandingDeadlocks } from '../client/deadlock/standing-deadlocks.js';
import { LockClient } from '../client/lock-client.js';
import { currentScope, runInScope, Scope } from '../client/scope/scope.js';
import { Seen } from '../client/seen.js';
import {
  assertKnownOptions,
  assertName,
  assertOwnOptions,
  KINDS,
  NAMED_OPTIONS,
  reasonOf,
} from '../client/validation.js';
import { LockConfigError } from '../api/errors.js';
import type { LockEvent } from '../api/events.js';
import type { LockHealth } from '../api/health.js';
import { logEvent } from './event-log.js';
import type {
  AcquireOptions,
  AnswerOptions,
  LockModuleOptions,
  ReasonOptions,
  UsingOptions,
} from '../api/options.js';
import { assertGiven, resolveOptions } from './options-validation.js';
import { settingsWarnings } from './options-warnings.js';
import type { LockState } from '../api/lock-state.js';
import type { Election, ElectionOptions } from '../api/election.js';
import { Elections } from '../locks/election/elections.js';
import { Hold } from '../locks/hold.js';
import { inspect } from '../locks/listing/inspection.js';
import type { Lease, Lock } from '../api/lock.js';
import { LockList } from '../locks/listing/lock-list.js';
import type { ListOptions, LockPage } from '../api/lock-summary.js';
import { MultiLock } from '../locks/multi/multi-lock.js';
import { PlainLock } from '../locks/plain-lock.js';
import { FAIR, QueueLock } from '../locks/queue-lock.js';
import { ReadWriteLock } from '../locks/read-write-lock.js';
import { Semaphore } from '../locks/semaphore.js';
import { once, type OnceOptions, type OnceResult } from '../locks/once/once.js';
import { resume } from '../locks/ticket/resume.js';
import { rememberState, type ServiceState } from './service-state.js';
import { connect, createStore, isInProcess, serversOf } from '../stores/create-store.js';

/** A lock's name. An array is a multi-lock: all or none. */
export type LockName = string | readonly string[];

/**
 * Gives out locks. Injectable wherever LockModule is imported; several instances are told apart by name. All times are
 * milliseconds.
 */
export class LockService implements BeforeApplicationShutdown, OnApplicationShutdown, AsyncDisposable {
  /**
   * All events of the locks of this service, successes and failures. Completes at shutdown. Listeners are called at once
   * and run outside of any scope: their locks are their own.
   */
  readonly events$: Observable<LockEvent>;
  private readonly client: LockClient;
  private readonly state: ServiceState;
  private readonly elections: Elections;

  /** @throws LockConfigError when an option is wrong */
  constructor(options: LockModuleOptions) {
    assertGiven(options);
    const settings = resolveOptions(options);
    const store = createStore(options, settings);
    // In memory a lock that is still held must not keep the process alive: a failed test leaves some. A wait with an end
    // does keep it alive.
    const client = (this.client = new LockClient(
      store,
      settings,
      isInProcess(store) ? idleTimerAt : undefined,
    ));
    this.state = rememberState(this, {
      settings,
      draining: false,
      closing: undefined,
      closesLast: false,
      client,
      bootWarnings: new Map(),
      clientId: () => client.id,
      headroomShare: () => this.client.watchdog.headroomShare(),
      counts: () => ({ held: this.leases().length, waiting: this.client.callers.waiting }),
      connect: () => {
        logger.log(`Holds locks as "${settings.label}"`);
        connect(store);
      },
      warn: (warning) => {
        this.client.warn(warning);
      },
      lookForDeadlocks: (names) => standingDeadlocks.look(names),
      servers: () => serversOf(store),
      isEnding: () => this.state.draining || this.state.closing !== undefined,
      endTerms: () => this.elections.close(),
      elections: () => this.elections.inUse,
    });
    const standingDeadlocks = new StandingDeadlocks(store, this.client.id);
    this.elections = new Elections(this.client, (name) => this.inspect(name));
    this.events$ = this.client.events.asObservable();
    const { name } = options;
    const logger = new Logger(name === undefined ? LockService.name : `${LockService.name}(${name})`);
    const requests = new Seen();
    this.client.events.unusual.subscribe((event) => {
      if (event.type === 'release-requested' && !requests.add(event.request)) return;
      logEvent(logger, event, this.client.returns.ranOut.has(event));
    });
    for (const warning of settingsWarnings(settings)) this.state.warn(warning);
  }

  /**
   * Holds a lock while the callback runs; see {@link Lock.using}.
   * @throws what {@link acquire} throws, before the callback runs
   */
  using<T>(name: LockName, callback: (lease: Lease) => T | Promise<T>): Promise<T>;
  using<T>(name: LockName, options: UsingOptions, callback: (lease: Lease) => T | Promise<T>): Promise<T>;
  async using<T>(
    name: LockName,
    optionsOrCallback: UsingOptions | ((lease: Lease) => T | Promise<T>),
    callback?: (lease: Lease) => T | Promise<T>,
  ): Promise<T> {
    if (typeof optionsOrCallback === 'function') return await this.lockOf(name).using(optionsOrCallback);
    const [lock, options = {}] = this.lockAndOptions(name, optionsOrCallback, 'using');
    return await lock.using(options, callback as (lease: Lease) => T | Promise<T>);
  }

  /**
   * Waits for a lock; see {@link Lock.acquire}. An array of names gives one lease on all of them. The lease is an owner of
   * its own, except that it re-enters what `using` or the decorator around it holds; see {@link runInScope}.
   * @throws LockTimeoutError when it is still busy after `waitTime`
   * @throws LockUnavailableError when the store did not answer in time
   * @throws LockKeyError when a name is empty, longer than 1,024 bytes, no string or contains `~ndl:`
   */
  async acquire(name: LockName, options?: AcquireOptions): Promise<Lease> {
    const [lock, others] = this.lockAndOptions(name, options, 'acquire');
    return await lock.acquire(others);
  }

  /**
   * Takes a lock if it is free; see {@link Lock.tryAcquire}. Null when it is busy.
   * @throws what {@link acquire} throws, except LockTimeoutError
   */
  async tryAcquire(name: LockName, options?: AcquireOptions): Promise<Lease | null> {
    const [lock, others] = this.lockAndOptions(name, options, 'tryAcquire');
    return await lock.tryAcquire(others);
  }

  /**
   * The plain, reentrant lock of this name. Costs nothing to make: nothing is cached or sent.
   * @throws LockKeyError when the name is empty, longer than 1,024 bytes, no string or contains `~ndl:`
   */
  getLock(name: string): Lock {
    return new PlainLock(name, this.client);
  }

  /**
   * First come, first served, across all processes: a hand-over is one command and one message, for any number of waiters.
   * A plain lock is first come, first served among processes, and each process hands it off among its own callers. An array
   * of names gives one multi-lock of their fair locks.
   */
  getFairLock(name: LockName): Lock {
    return this.lockOf(name, 'fair');
  }

  /**
   * Readers share it, a writer has it alone. The order of arrival decides, so that no caller starves. A writer may read as
   * well and goes on reading when it stops writing. A reader cannot become the writer: LockConfigError.
   */
  getReadWriteLock(name: string): { readonly read: Lock; readonly write: Lock } {
    return new ReadWriteLock(name, this.client);
  }

  /**
   * Up to `permits` leases at once, first come, first served. All processes have to agree on the number:
   * LockKindMismatchError names both. Permits are leases of their own, and are not re-entered.
   * @throws LockConfigError when `permits` is no whole number from 1 on
   */
  getSemaphore(name: string, permits: number): Lock {
    return new Semaphore(name, this.client, permits);
  }

  /**
   * Several locks as one: all or none. They may be of any kind, and of several services. It waits without holding anything.
   * Only if several members stay in use at the same time, some are held for a bounded time while the next is waited for,
   * in one order for all processes.
   * @throws LockConfigError when there is none, when one is no lock, and when a semaphore is among them twice
   */
  getMultiLock(locks: readonly Lock[]): Lock {
    return new MultiLock(locks, this.client);
  }

  /**
   * Goes on with a lease that another process has handed over, see {@link Lease.handOver}: once, under a greater fencing
   * token, with the same lease time, and renewed here. The lock is not free between. Works for locks of all kinds, and not
   * on `nodes`.
   *
   * The lease is an owner of its own, like one that was acquired by hand: directly in {@link runInScope} it belongs to that
   * scope, which re-enters it. A store that does not answer is asked again for `waitTime`, at most for the lease time.
   * @throws LockLostError when the ticket has been used (`taken`, `deleted`), came too late (`expired`), or its lock has been
   * taken away
   * @throws LockConfigError when it is not a ticket of this instance's locks
   * @throws LockUnavailableError when the store did not answer in time. The ticket may be used up then: the lock is given up
   * @throws LockClosedError when the application is shutting down
   */
  async resume(ticket: string): Promise<Lease> {
    return await resume(this.client, ticket);
  }

  /**
   * Runs the callback at most once in a period, over all processes: under the plain lock of that name, in its scope, as
   * `using` does. A success is noted beside the lock before the lock is released, and counts from then on for `period`. A
   * call that comes while another one runs waits for it. A failure lets the next call try, after `retryAfterFailure`; a crash
   * does so after the lease.
   * @returns the result of the callback, or how long ago another call has succeeded, ms by the clock of the store
   * @throws the error of the callback, and the errors of {@link acquire}
   * @throws LockLostError with the callback's `result`, when the lease was lost before the success was noted: it does not count
   * @throws LockUnavailableError when the store refused the note for good: another call may run
   * @throws LockConfigError on `nodes`, and when an option is wrong
   */
  async once<T>(
    name: string,
    options: OnceOptions,
    callback: (lease: Lease) => T | Promise<T>,
  ): Promise<OnceResult<T>> {
    return await once(this.client, name, options, callback);
  }

  /**
   * The election of one leader among all processes, by the plain lock of that name. A service has one election for each
   * name: all calls see the same state. Costs nothing to make: nothing is sent.
   * @throws LockKeyError as {@link getLock}
   * @throws LockConfigError for a wrong `leaseTime`, and for another one than that of an election that runs
   */
  getElection(name: string, options?: ElectionOptions): Election {
    return this.elections.get(name, options);
  }

  /**
   * Runs the callback in a scope of its own, which is like a thread of Redisson: a lock that is acquired by hand directly
   * in it belongs to the scope, and is re-entered there. It shares nothing with the caller: the caller's locks are not
   * re-entered in it but waited for.
   *
   * Everything that the callback starts counts as this one owner. A server or a consumer of messages that is started in it
   * would handle all requests as one owner.
   *
   * A lock is re-entered as soon as the scope holds it. Branches that ask for it at the same time, before the scope holds
   * it, wait for each other like two owners, so a lock that several branches need is acquired before they start.
   */
  runInScope<T>(callback: () => T): T {
    return runInScope(Scope.apart(currentScope()), callback);
  }

  /**
   * The locks that are held or waited for, by all processes, a page at a time. Reads the store in steps that do not block
   * it; see {@link LockSummary}. A lock that is held the whole time is listed, also if a server restarts with its data
   * meanwhile. On a Cluster it is left out only if its slot changes hands twice. One that comes or goes meanwhile may be listed or
   * not, and rarely twice. A page ends with `cursor: null` when there are no more.
   * @throws LockConfigError for a wrong option, and on a store of your own that cannot list
   * @throws LockUnavailableError when the store did not answer in time
   */
  async list(options?: ListOptions): Promise<LockPage> {
    return await new LockList(this.client).page(options);
  }

  /** The present leases of this process through this service. */
  leases(): readonly Lease[] {
    const leases: Lease[] = [];
    for (const holder of this.client.tenures.users())
      if (holder instanceof Hold)
        leases.push(...holder.leases.filter(({ held }) => held).map(({ shown }) => shown));
    return leases;
  }

  /**
   * The state of a lock in the store; null when it has no holder.
   * @throws LockUnavailableError when the store did not answer in time
   * @throws LockAbortedError when the signal aborts
   */
  async inspect(name: string, options?: AnswerOptions): Promise<LockState | null> {
    return await inspect(this.client, name, options);
  }

  /**
   * Asks the holders of a lock of any kind to release it: the signal {@link Lease.releaseRequested} of their leases aborts,
   * and tells the label of this service and the reason. Asking takes nothing away: a holder may go on.
   *
   * The holders of this service are asked, and those of other processes and services that have held a lock for a second or
   * have waited for one. A holder that is not asked, such as a client of Redisson, is not counted. The messages are hints: if
   * one is lost on its way, its holder is counted all the same. Ask again after a while.
   * @returns how many holders were asked; 0 when the lock is free
   * @throws LockConfigError when the reason is empty or longer than 1,000 characters
   * @throws LockUnavailableError when the store did not answer in time, or refuses to send messages
   */
  async requestRelease(name: string, options?: ReasonOptions): Promise<number> {
    assertName(name);
    return await this.client.releaseRequests.send(name, reasonOf(options, 'requestRelease'));
  }

  /** Takes a lock of any kind away from all of its holders, readers and writer alike; see {@link Lock.forceRelease}. */
  async forceRelease(name: string, options?: ReasonOptions): Promise<boolean> {
    return await this.getLock(name).forceRelease(options);
  }

  /**
   * Asks every node of the store. Never rejects, and answers within 5 s in any state of the store; see {@link LockHealth}.
   */
  async health(): Promise<LockHealth> {
    const { preflight, watchdog } = this.client;
    const { status, nodes, warnings, charter } = await preflight.report();
    const renewalStuck = watchdog.stuck;
    const headroom = watchdog.headroom();
    return {
      status: renewalStuck || this.state.isEnding() ? 'down' : status,
      nodes,
      warnings,
      ...(charter === undefined ? {} : { charter }),
      ...this.state.counts(),
      renewalHeadroom: headroom === undefined ? undefined : Math.floor(headroom),
      renewalStuck,
    };
  }

  /**
   * The work of elections is told to end, campaigns end, and `health()` is `down`. Locks are still given out: consumers start
   * work until their own hooks have run. LockModule calls this when each module has had its `onModuleDestroy`.
   */
  beforeApplicationShutdown(): void {
    this.state.draining = true;
    void this.state.endTerms();
  }

  /**
   * Closes a service that the application provides by itself. LockModule closes its services after the last hook of the
   * application, and does not need this.
   */
  async onApplicationShutdown(): Promise<void> {
    if (!this.state.closesLast) await this.close();
  }

  /**
   * Ends the service. Only if no Nest application does it: in a script, a worker or a test. Until then the connections
   * keep the process alive.
   *
   * From the call on, callers get no lock, and those that wait are refused. Code that runs under a lock still gets further
   * ones. A lock whose callback runs (`using`, a decorator, `once`, the term of an election) is not released under the work:
   * it is renewed until the callback ends, for `leaseTime` of the module at most, and is then left to its own end in the
   * store. Other leases are released at once. Resolves when the last lock is back and the connections that this service
   * opened are closed; under a lock of this service at once, because the end waits for that code. May be called again.
   */
  async close(): Promise<void> {
    this.state.draining = false;
    void this.state.endTerms();
    this.state.closing ??= closeTogether([this.client], timerAt).closed;
    this.state.closing.catch(() => undefined);
    const around = currentScope()?.near() ?? [];
    if (!around.some(({ clientId }) => clientId === this.client.id)) await this.state.closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** The name of this instance, for a log line. */
  toJSON(): object {
    const { instance: name, label } = this.state.settings;
    return { name, label };
  }

  /** Takes `kind` out of the options: the lock that is returned has it. */
  private lockAndOptions<O extends AcquireOptions>(
    name: LockName,
    options: O | undefined,
    method: string,
  ): readonly [Lock, Omit<O, 'kind'> | undefined] {
    if (options === undefined) return [this.lockOf(name), options];
    assertKnownOptions(options, NAMED_OPTIONS, method);
    // What else may be wrong with the others is refused by the lock.
    if (!('kind' in options)) return [this.lockOf(name), options];
    assertOwnOptions(options, NAMED_OPTIONS);
    const { kind = 'lock', ...others } = options;
    if (!KINDS.includes(kind)) {
      throw new LockConfigError('kind', `must be ${KINDS.join(' or ')}`, { value: kind });
    }
    return [this.lockOf(name, kind), others];
  }

  private lockOf(name: LockName, kind: NonNullable<AcquireOptions['kind']> = 'lock'): Lock {
    if (!Array.isArray(name)) return this.lockOfKind(name as string, kind);
    if (name.length === 0) throw new LockConfigError('name', 'an array of names must not be empty');
    const locks = (name as readonly string[]).map((member) => this.lockOfKind(member, kind));
    return this.getMultiLock(locks);
  }

  private lockOfKind(name: string, kind: NonNullable<AcquireOptions['kind']>): Lock {
    if (kind === 'lock') return this.getLock(name);
    if (kind === 'fair') return new QueueLock(name, this.client, FAIR);
    return this.getReadWriteLock(name)[kind];
  }
}
