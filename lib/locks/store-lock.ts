import { leaseWithin, now } from '../client/holding/deadline.js';
import { forceRelease } from '../client/holding/forced-release.js';
import type { LockClient, QueueTerms, StoredHold } from '../client/lock-client.js';
import type { Scope } from '../client/scope/scope.js';
import { releasedError, type Tenure } from '../client/holding/tenure.js';
import { assertName, reasonOf } from '../client/validation.js';
import type { Busy } from '../client/waiting/waiting.js';
import {
  LockAbortedError,
  LockClosedError,
  LockConfigError,
  type LockUnavailableError,
} from '../api/errors.js';
import type { ReasonOptions } from '../api/options.js';
import { inQuotes } from '../runtime/text.js';
import { type AcquireCall, remaining } from './call.js';
import { answerWithin, untilGivenBack } from '../client/waiting/answer-within.js';
import { type HeldLease, LeaseShare } from './held-lease.js';
import { Hold } from './hold.js';
import type { OwnLease } from './own-lease.js';
import { ScopedLock } from './scoped-lock.js';

/** The rule for a store of the application that gives no reason of its own. */
const NO_QUEUES = 'has no fair lock, read-write lock or semaphore: its store has no queues';

/**
 * A lock of one name in the store. The plain lock is wire-compatible with Redisson's RLock. The other kinds have a queue
 * in the store: first come, first served, across all processes.
 */
export class StoreLock extends ScopedLock {
  private madeIdentity: string | undefined;
  /** Of one side of a read-write lock, the other one. */
  otherSide: StoreLock | undefined;

  /** @param queue the kind of its queue; undefined for the plain lock */
  constructor(
    readonly name: string,
    client: LockClient,
    readonly queue?: QueueTerms,
  ) {
    super(client);
    assertName(name);
    const { queues, noQueues } = client.store;
    if (queue === undefined || queues !== undefined) return;
    throw new LockConfigError(client.options.location, noQueues ?? NO_QUEUES, { key: name });
  }

  get kind(): 'lock' | 'fair' | 'read' | 'write' | 'semaphore' {
    const { queue } = this;
    if (queue?.kind === 'read-write') return queue.mode === 'shared' ? 'read' : 'write';
    return queue?.kind ?? 'lock';
  }

  /** The size of a semaphore; 1 for the other kinds. */
  get permits(): number {
    return this.queue?.kind === 'semaphore' ? this.queue.capacity : 1;
  }

  get members(): readonly StoreLock[] {
    return [this];
  }

  async isLocked(): Promise<boolean> {
    return (await this.holds()).length > 0;
  }

  /** A scope may hold several permits of a semaphore, and several holds with `reentrant: false`. */
  countHolds(scope: Scope | undefined): number {
    let count = 0;
    for (const hold of (scope?.holdsOf(this.identity) ?? []) as Iterable<Hold>)
      if (hold.held) count += hold.count;
    return count;
  }

  /** The reason to refuse a call before any command. Undefined if there is none, or if the call re-enters. */
  refusal(call: AcquireCall): Busy | LockUnavailableError | undefined {
    const { name, client } = this;
    const { waitTime, maxWaiting, failFast } = call;
    if (this.findHold(call)?.held === true) return undefined;
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
    return await forceRelease(this.client, this.name, this.otherSide && this.queue?.mode, reason);
  }

  /** The holds of this lock in the store. Each side of a read-write lock sees its own holds. */
  private async holds(): Promise<StoredHold[]> {
    const { queue } = this;
    const holders = (await this.client.store.inspect(this.name))?.holders ?? [];
    return holders.filter(({ mode }) => queue === undefined || mode === queue.mode);
  }

  /** Gets the lock for a new owner. */
  private acquireTenure(call: AcquireCall): Promise<Tenure | Busy> {
    const { name, client, queue } = this;
    if (queue === undefined) return client.acquire(name, call);
    return client.acquireQueued({ name, queue, ownWriteHold: this.ownWriteHold(call) }, call);
  }

  /**
   * The owner of the scope's own write hold. A scope that writes may also read, and continue to read after the write.
   * @throws LockConfigError for a reader that wants to write: it would wait for itself, and two of them for each other
   */
  private ownWriteHold(call: AcquireCall): string | undefined {
    const hold = this.otherSide?.findHold(call);
    if (hold?.held !== true) return undefined;
    if (this.kind === 'read') return hold.owner;
    throw new LockConfigError(
      'write',
      `"${inQuotes(this.name)}" is held for reading here, and a reader cannot become the writer: two that tried would wait for ` +
        'each other. Take the write lock first, then the read lock, or release the read lock before',
      { key: this.name },
    );
  }

  acquireLease(call: AcquireCall): Promise<OwnLease | Busy> {
    const admitted = this.admit(call);
    return admitted === undefined
      ? this.enterAdmitted(call)
      : admitted.then(() => this.enterAdmitted(remaining(call)));
  }

  /** @returns undefined if the store's limit allows the call, as it mostly does */
  admit(call: AcquireCall): Promise<void> | undefined {
    const { leaseBounds, defaultTerms } = this.client;
    const { minHoldTime = 0, leaseTime, renew, signal } = call;
    const wished = leaseTime ?? defaultTerms.leaseTime;
    if (!leaseBounds.exceeds(Math.max(wished, minHoldTime))) return undefined;
    const isFixed = renew === false || (leaseTime !== undefined && renew !== true);
    const promised = isFixed ? Math.max(wished, minHoldTime) : minHoldTime;
    // A call that only re-enters needs nothing from the store.
    if (promised === 0 && leaseTime === undefined && this.findHold(call) !== undefined) return undefined;
    this.assertNotAborted(call);
    return answerWithin(leaseBounds.admit(this.name, { promised, wished }, call.until), this.name, {
      signal,
    });
  }

  private enterAdmitted(call: AcquireCall): Promise<OwnLease | Busy> {
    this.assertNotAborted(call);
    const outer = this.findHold(call);
    return outer === undefined ? this.acquireHeld(call) : this.reenter(outer, call);
  }

  private acquireHeld(call: AcquireCall): Promise<OwnLease | Busy> {
    return this.acquireTenure(call).then((tenure) => {
      if ('busy' in tenure) return tenure;
      if (!isLostToAnother(tenure)) return this.begin(tenure, call);
      // The store lost the grant and gave the lock to another owner, and this process learnt it before the caller
      // began.
      this.assertNotAborted(call);
      return this.acquireHeld(remaining(call));
    });
  }

  /**
   * Makes a lease of a tenure, which the scope of the call shares from now on.
   * @param at now; one moment may serve several leases of one step
   * @throws LockClosedError if the client has closed since the grant; the tenure is released
   */
  begin(tenure: Tenure, call: AcquireCall, at = now()): HeldLease {
    const { inside, into } = call;
    if (this.client.refuses(call)) {
      void this.client.release(tenure);
      throw new LockClosedError(this.name);
    }
    const label = this.groupOf(call);
    const hold = new Hold(tenure, this.client, this.kind, label, call, at);
    const share = new LeaseShare(hold, label, inside, into?.add(this.identity, hold), at, call.site);
    const { name, owner, fencingToken, handoffs } = tenure;
    const waited = at - call.askedAt;
    const handedOff = handoffs > 0;
    const { events } = this.client;
    call.trace?.entered(handedOff ? 'handed-off' : 'granted');
    events.next({ type: 'acquired', name, label, owner, fencingToken, waited, handedOff });
    const by = hold.handedOver;
    if (by !== undefined) events.next({ type: 'handed-over', name, label, owner, fencingToken, by });
    // The loss happened before the hold existed, so it is reported now.
    if (tenure.loss !== undefined) {
      const { reason, forced } = tenure.loss;
      events.next({ type: 'lost', name, label, owner, reason, forced });
    }
    if (tenure.asker !== undefined) hold.onReleaseRequested(tenure.asker);
    return share.shown;
  }

  /** @throws LockConfigError if the hold to re-enter cannot last as long as the call asks for */
  assertAcquirable(call: AcquireCall): void {
    const hold = this.findHold(call);
    if (hold?.held === true) assertLasting(hold, call);
  }

  private async reenter(hold: Hold, call: AcquireCall): Promise<OwnLease> {
    if (!hold.held) throw hold.loss ?? releasedError(hold.tenure);
    assertLasting(hold, call);
    const forget = call.into?.add(this.identity, hold);
    const share = new LeaseShare(hold, this.groupOf(call), call.inside, forget, now(), call.site);
    const { renew, signal, waitTime, answerTime = 0 } = call;
    const { leaseBounds } = this.client;
    const leaseTime = renew === true ? leaseBounds.within(call.leaseTime ?? 0) : (call.leaseTime ?? 0);
    const time = waitTime > 0 ? waitTime : answerTime;
    const { remainingTime, timeToHold, isFixed } = hold.tenure;
    // A renewed lease has no end, so it needs the whole fixed lease of the hold.
    if (isFixed && leaseTime > 0 && renew !== true) share.needsUntil = now() + leaseTime;
    if (Math.min(leaseTime, timeToHold) > remainingTime) {
      const until = now() + time;
      try {
        const extended = hold.extend(share, leaseWithin(leaseTime, timeToHold), signal, until);
        // For a call that does not wait, the store may take its own time.
        await answerWithin(extended, this.name, time > 0 ? { until } : {});
      } catch (error) {
        await untilGivenBack(share.shown.release(), { until, signal });
        throw error;
      }
    }
    return share.shown;
  }

  /** The hold of the call's scope that the call shares. Permits of a semaphore are never shared. */
  findHold({ inside, apart }: Pick<AcquireCall, 'inside' | 'apart'>): Hold | undefined {
    if (this.queue?.kind === 'semaphore') return undefined;
    return inside?.find(this.identity, apart) as Hold | undefined;
  }

  /**
   * Equal for the two sides of a read-write lock. Contains the client, because another service may use another Redis,
   * and must not re-enter locks of this one.
   */
  get location(): string {
    return `${this.client.id} ${this.name}`;
  }

  /** Made on first use and then kept: an acquisition in a scope reads it several times, and other acquisitions never. */
  get identity(): string {
    const { location, queue } = this;
    return (this.madeIdentity ??= queue ? `${location} ${queue.kind} ${queue.mode}` : location);
  }

  /** @throws LockAbortedError if the signal has aborted before any command */
  private assertNotAborted({ signal }: AcquireCall): void {
    if (signal?.aborted === true) throw new LockAbortedError(this.name, signal.reason);
  }
}

const isLostToAnother = ({ held, loss }: Tenure): boolean =>
  !held && (loss?.reason === 'taken' || loss?.reason === 'deleted');

/** A fixed lease promises its length. A renewed lease ends with `maxHoldTime`, whatever its length. */
function assertLasting(hold: Hold, { leaseTime, renew }: AcquireCall): void {
  if (leaseTime !== undefined && renew !== true) hold.assertLasting(leaseTime);
}
