import { leaseWithin, now } from '../core/deadline.js';
import type { LockTerms } from '../core/acquisition.js';
import type { LockClient, QueueTerms, StoredHold } from '../core/lock-client.js';
import type { Scope } from '../core/scope.js';
import { releasedError, type Tenure, type LeaseTerms } from '../core/tenure.js';
import { assertName, reasonOf } from '../core/validation.js';
import type { Busy, WaitRequest } from '../core/waiting.js';
import { LockAbortedError, LockClosedError, type LockUnavailableError } from '../lock.errors.js';
import type { ReasonOptions } from '../lock.options.js';
import type { AcquireCall } from './acquire-call.js';
import { answeredBy } from '../core/answered-by.js';
import { untilAborted } from '../core/until-aborted.js';
import { untilGivenBack } from './giving-back.js';
import { type HeldLease, Share } from './held-lease.js';
import { Hold } from './hold.js';
import type { Holder } from './long-wait.js';
import type { OwnLease } from './own-lease.js';
import { ScopedLock } from './scoped-lock.js';

/** A lock of one name in the store. A kind adds how it gets the lock. */
export abstract class StoreLock extends ScopedLock {
  private madeIdentity: string | undefined;

  constructor(
    readonly name: string,
    client: LockClient,
  ) {
    super(client);
    assertName(name);
  }

  /** The terms under which a lease of it goes to another process; undefined for a plain lock. */
  abstract readonly travelsAs: LockTerms['queue'];

  clientFor(): LockClient {
    return this.client;
  }

  inTheWay(): Holder | undefined {
    const { client, name } = this;
    const holder = client.callers.inTheWay(name);
    return holder === undefined ? undefined : { holder, client };
  }

  async isLocked(): Promise<boolean> {
    return (await this.holds()).length > 0;
  }

  /** A lock may be held several times: permits of a semaphore, and what is acquired with `reentrant: false`. */
  countHolds(scope: Scope | undefined): number {
    let count = 0;
    for (const hold of (scope?.holdsOf(this.identity) ?? []) as Iterable<Hold>)
      if (hold.held) count += hold.count;
    return count;
  }

  refusal(inside: Scope | undefined, options: AcquireCall): Busy | LockUnavailableError | undefined {
    const { name, client } = this;
    const { waitTime, maxWaiting, failFast } = options;
    if (this.findHold(inside, options)?.held === true) return undefined;
    const outage = failFast ? client.store.outageOf?.(name) : undefined;
    if (outage !== undefined) return outage;
    const isFull = waitTime > 0 && maxWaiting < Infinity && client.callers.waitingFor(name) >= maxWaiting;
    return isFull ? { busy: true, holder: undefined, name, isFull } : undefined;
  }

  async remainingTime(): Promise<number> {
    return Math.max(0, ...(await this.holds()).map((hold) => hold.remainingTime));
  }

  async forceRelease(options?: ReasonOptions): Promise<boolean> {
    const reason = reasonOf(options, 'forceRelease');
    return await this.client.forceRelease(this.name, this.forcedMode, reason);
  }

  /** The side that a forced release takes the lock from; undefined for all. */
  protected get forcedMode(): QueueTerms['mode'] | undefined {
    return undefined;
  }

  /** The holds of this lock in the store. The sides of a read-write lock each see their own. */
  protected async holds(): Promise<StoredHold[]> {
    return [...((await this.client.store.inspect(this.name))?.holders ?? [])];
  }

  /** Gets the lock for a new owner. */
  protected abstract acquireTenure(
    request: WaitRequest,
    scope: Scope | undefined,
    options: AcquireCall,
  ): Promise<Tenure | Busy>;

  acquireLease(
    inside: Scope | undefined,
    into: Scope | undefined,
    options: AcquireCall,
  ): Promise<OwnLease | Busy> {
    const askedAt = now();
    const admitted = this.admit(options, inside, askedAt + options.waitTime);
    if (admitted === undefined) return this.enterAdmitted(inside, into, options, askedAt);
    return admitted.then(() => {
      const waitTime = Math.max(0, options.waitTime - (now() - askedAt));
      return this.enterAdmitted(inside, into, { ...options, waitTime }, askedAt);
    });
  }

  /** @returns undefined where the store allows what the call asks for, as it mostly does */
  admit(options: AcquireCall, inside: Scope | undefined, until: number): Promise<void> | undefined {
    const { leaseBounds, defaultTerms } = this.client;
    const { minHoldTime = 0, leaseTime, renew, signal } = options;
    const wished = leaseTime ?? defaultTerms.leaseTime;
    if (!leaseBounds.exceeds(Math.max(wished, minHoldTime))) return undefined;
    const isFixed = renew === false || (leaseTime !== undefined && renew !== true);
    const promised = isFixed ? Math.max(wished, minHoldTime) : minHoldTime;
    // What only re-enters asks the store for nothing.
    if (promised === 0 && leaseTime === undefined && this.findHold(inside, options) !== undefined)
      return undefined;
    assertNotAborted(this.name, signal);
    return untilAborted(leaseBounds.admit(this.name, { promised, wished }, until), signal, this.name);
  }

  private enterAdmitted(
    inside: Scope | undefined,
    into: Scope | undefined,
    options: AcquireCall,
    askedAt: number,
  ): Promise<OwnLease | Busy> {
    const request = this.request(options, inside);
    const outer = this.findHold(inside, options);
    if (outer !== undefined) return this.reenter(outer, inside, into, options);

    return this.acquireHeld(request, inside, into, options, askedAt);
  }

  private acquireHeld(
    request: WaitRequest,
    inside: Scope | undefined,
    into: Scope | undefined,
    options: AcquireCall,
    askedAt: number,
  ): Promise<OwnLease | Busy> {
    return this.acquireTenure(request, inside, options).then((tenure) => {
      if ('busy' in tenure) return tenure;
      if (!isLostToAnother(tenure)) return this.begin(tenure, inside, into, options, askedAt);
      // The store has forgotten it and granted it to another owner. That was noticed before the caller could begin.
      assertNotAborted(this.name, request.signal);
      const waitTime = Math.max(0, request.waitTime - (now() - askedAt));
      return this.acquireHeld({ ...request, waitTime }, inside, into, options, askedAt);
    });
  }

  /**
   * A tenure becomes a lease, which the scope shares from now on.
   * @param at now; several leases of one step may share one look at the clock
   * @throws LockClosedError when the client has closed since the grant; the tenure is given back
   */
  begin(
    tenure: Tenure,
    inside: Scope | undefined,
    into: Scope | undefined,
    options: AcquireCall,
    askedAt: number,
    at = now(),
  ): HeldLease {
    if (this.client.refuses({ inside })) {
      void this.client.release(tenure);
      throw new LockClosedError(this.name);
    }
    const label = this.groupOf(options);
    const hold = new Hold(tenure, this.client, this.kind, label, options, at);
    const share = new Share(hold, label, inside, into?.add(this.identity, hold), at, options.site);
    const { name, owner, fencingToken, handoffs } = tenure;
    const waited = at - askedAt;
    const handedOff = handoffs > 0;
    const { events } = this.client;
    options.trace?.entered(handedOff ? 'handed-off' : 'granted');
    events.next({ type: 'acquired', name, label, owner, fencingToken, waited, handedOff });
    const by = hold.handedOver;
    if (by !== undefined) events.next({ type: 'handed-over', name, label, owner, fencingToken, by });
    // The loss could not be reported before.
    if (tenure.loss !== undefined) {
      const { reason, forced } = tenure.loss;
      events.next({ type: 'lost', name, label, owner, reason, forced });
    }
    if (tenure.asker !== undefined) hold.onReleaseRequested(tenure.asker);
    return share.shown;
  }

  notHeldIn(inside: Scope | undefined, options: AcquireCall): readonly StoreLock[] {
    return this.findHold(inside, options)?.held === true ? [] : [this];
  }

  assertAcquirable(inside: Scope | undefined, options: AcquireCall): void {
    const hold = this.findHold(inside, options);
    if (hold?.held === true) assertLasting(hold, options);
  }

  private async reenter(
    hold: Hold,
    inside: Scope | undefined,
    into: Scope | undefined,
    options: AcquireCall,
  ): Promise<OwnLease> {
    if (!hold.held) throw hold.loss ?? releasedError(hold.tenure);
    assertLasting(hold, options);
    const forget = into?.add(this.identity, hold);
    const share = new Share(hold, this.groupOf(options), inside, forget, now(), options.site);
    const { renew, signal, waitTime, answerTime = 0 } = options;
    const { leaseBounds } = this.client;
    const leaseTime = renew === true ? leaseBounds.within(options.leaseTime ?? 0) : (options.leaseTime ?? 0);
    const time = waitTime > 0 ? waitTime : answerTime;
    const { remainingTime, timeToHold, isFixed } = hold.tenure;
    // A lease that is to be renewed needs all that a fixed one has.
    if (isFixed && leaseTime > 0 && renew !== true) share.needsUntil = now() + leaseTime;
    if (Math.min(leaseTime, timeToHold) > remainingTime) {
      const until = now() + time;
      try {
        const extended = hold.extend(share, leaseWithin(leaseTime, timeToHold), signal, until);
        // A call that does not wait leaves the store its own time to answer.
        await (time > 0 ? answeredBy(until, extended, this.name) : extended);
      } catch (error) {
        await untilGivenBack(share.shown.release(), until, signal);
        throw error;
      }
    }
    return share.shown;
  }

  /** The hold of the scope that another acquisition in it shares. */
  findHold(scope: Scope | undefined, { apart }: Pick<AcquireCall, 'apart'>): Hold | undefined {
    return scope?.find(this.identity, apart) as Hold | undefined;
  }

  /** Includes the client: a second service, which may talk to another Redis, never re-enters the locks of the first one. */
  get location(): string {
    return `${this.client.id} ${this.name}`;
  }

  /** Made with the first use, and once: an acquisition in a scope looks for its hold several times, another one never. */
  get identity(): string {
    return (this.madeIdentity ??= this.makeIdentity());
  }

  protected makeIdentity(): string {
    return this.location;
  }

  /** @throws LockAbortedError for a signal that is aborted already, before anything is sent */
  request(
    { waitTime, answerTime, leaseTime, renew, signal, trace, nested }: AcquireCall,
    inside: Scope | undefined,
  ): WaitRequest {
    assertNotAborted(this.name, signal);
    return { terms: this.termsOf(leaseTime, renew), waitTime, answerTime, signal, inside, trace, nested };
  }

  private termsOf(leaseTime: number | undefined, renew: boolean | undefined): LeaseTerms {
    const { defaultTerms } = this.client;
    if (leaseTime === undefined && renew !== false) return defaultTerms;
    return { leaseTime: leaseTime ?? defaultTerms.leaseTime, renewed: renew ?? leaseTime === undefined };
  }
}

const isLostToAnother = ({ held, loss }: Tenure): boolean =>
  !held && (loss?.reason === 'taken' || loss?.reason === 'deleted');

/** @throws LockAbortedError */
function assertNotAborted(name: string, signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw new LockAbortedError(name, signal.reason);
}

/** A fixed lease promises its length. A renewed lease ends with `maxHoldTime`, whatever length was asked for. */
function assertLasting(hold: Hold, { leaseTime, renew }: AcquireCall): void {
  if (leaseTime !== undefined && renew !== true) hold.assertLasting(leaseTime);
}
