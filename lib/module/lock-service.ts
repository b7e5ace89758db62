import type { BeforeApplicationShutdown, OnApplicationShutdown } from '@nestjs/common';
import type { Observable } from 'rxjs';
import { waitsFor } from '../client/holding/closing.js';
import { timerAt } from '../client/holding/deadline.js';
import type { LockClient } from '../client/lock-client.js';
import { currentScope, runInScope, Scope } from '../client/scope/scope.js';
import { assertName, reasonOf } from '../client/validation.js';
import type { LockEvent } from '../api/events.js';
import type { LockHealth } from '../api/health.js';
import { beginClosing, closeInHook } from './close-in-hook.js';
import { createClient } from './create-client.js';
import type {
  AcquireOptions,
  AnswerOptions,
  LockModuleOptions,
  ReasonOptions,
  UsingOptions,
} from '../api/options.js';
import type { LockState } from '../api/lock-state.js';
import type { Election, ElectionOptions } from '../api/election.js';
import { Elections } from '../locks/election/elections.js';
import { leasesOf } from '../locks/hold.js';
import { lockOfKind, readWriteLock } from '../locks/kinds.js';
import { inspect } from '../locks/listing/inspection.js';
import type { Lease, Lock } from '../api/lock.js';
import { LockList } from '../locks/listing/lock-list.js';
import type { ListOptions, LockPage } from '../api/lock-summary.js';
import { MultiLock } from '../locks/multi/multi-lock.js';
import { once, type OnceOptions, type OnceResult } from '../locks/once/once.js';
import { resume } from '../locks/ticket/resume.js';
import { healthOf } from './health-report.js';
import { lockAndOptions, type LockName, lockOf } from './lock-by-name.js';
import { rememberState, type ServiceState, stateFor } from './service-state.js';

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
    const client = (this.client = createClient(options));
    this.elections = new Elections(client, (name) => this.inspect(name));
    this.state = rememberState(this, stateFor(client, this.elections, options.name));
    this.events$ = client.events.asObservable();
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
    if (typeof optionsOrCallback === 'function')
      return await lockOf(this.client, name).using(optionsOrCallback);
    const [lock, options = {}] = lockAndOptions(this.client, name, optionsOrCallback, 'using');
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
    const [lock, others] = lockAndOptions(this.client, name, options, 'acquire');
    return await lock.acquire(others);
  }

  /**
   * Takes a lock if it is free; see {@link Lock.tryAcquire}. Null when it is busy.
   * @throws what {@link acquire} throws, except LockTimeoutError
   */
  async tryAcquire(name: LockName, options?: AcquireOptions): Promise<Lease | null> {
    const [lock, others] = lockAndOptions(this.client, name, options, 'tryAcquire');
    return await lock.tryAcquire(others);
  }

  /**
   * The plain, reentrant lock of this name. Costs nothing to make: nothing is cached or sent.
   * @throws LockKeyError when the name is empty, longer than 1,024 bytes, no string or contains `~ndl:`
   */
  getLock(name: string): Lock {
    return lockOfKind(this.client, name, 'lock');
  }

  /**
   * First come, first served, across all processes: a hand-over is one command and one message, for any number of waiters.
   * A plain lock is first come, first served among processes, and each process hands it off among its own callers. An array
   * of names gives one multi-lock of their fair locks.
   */
  getFairLock(name: LockName): Lock {
    return lockOf(this.client, name, 'fair');
  }

  /**
   * Readers share it, a writer has it alone. The order of arrival decides, so that no caller starves. A writer may read as
   * well and goes on reading when it stops writing. A reader cannot become the writer: LockConfigError.
   */
  getReadWriteLock(name: string): { readonly read: Lock; readonly write: Lock } {
    return readWriteLock(this.client, name);
  }

  /**
   * Up to `permits` leases at once, first come, first served. All processes have to agree on the number:
   * LockKindMismatchError names both. Permits are leases of their own, and are not re-entered.
   * @throws LockConfigError when `permits` is no whole number from 1 on
   */
  getSemaphore(name: string, permits: number): Lock {
    return lockOfKind(this.client, name, 'semaphore', permits);
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
   * call that comes while another one runs waits for it, also inside of its callback. A failure lets the next call try,
   * after `retryAfterFailure`; a crash does so after the lease.
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
    return leasesOf(this.client);
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
    return await healthOf(this.client, this.state);
  }

  /**
   * The work of elections is told to end, campaigns end, and `health()` is `down`. Locks are still given out: consumers start
   * work until their own hooks have run. LockModule calls this when each module has had its `onModuleDestroy`.
   */
  beforeApplicationShutdown(): void {
    this.state.draining = this.state.closing === undefined;
    void this.state.endTerms();
  }

  /**
   * Closes a service that the application provides by itself; see {@link close}. Waits for callbacks for a second at most, as
   * a later hook may end them, and keeps their locks for a minute at least. LockModule does not need this.
   */
  async onApplicationShutdown(): Promise<void> {
    if (!this.state.closesLast) await closeInHook([this.state]);
  }

  /**
   * Ends the service. Only if no Nest application does it: in a script, a worker or a test. Until then the connections
   * keep the process alive.
   *
   * From the call on, callers get no lock, and those that wait are refused. Code that runs under a lock still gets further
   * ones. A lock whose callback runs (`using`, a decorator, `once`, the term of an election), or that was acquired by hand in
   * one, is not released under the work: unless its lease is fixed, it is renewed until the callback ends, for `leaseTime` of the module (of the lock, if that is longer) at most,
   * and is then left to its own end in the store. Other leases are released at once. Resolves when the last lock is back and the connections that
   * this service opened are closed; in such a callback, and under a lock of this service, at once (of any service of an
   * application, once that closes them together). May be called again.
   */
  async close(): Promise<void> {
    this.state.draining = false;
    if (this.state.closing === undefined) beginClosing([this.state], timerAt);
    if (!waitsFor(this.client, currentScope())) await this.state.closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** The name of this instance, for a log line. */
  toJSON(): object {
    const { instance: name, label } = this.state.settings;
    return { name, label };
  }
}
