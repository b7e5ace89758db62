import { idleTimerAt, now } from '../client/holding/deadline.js';
import type { LockClient } from '../client/lock-client.js';
import { runOutsideScopes, type Scope, type ScopedHold } from '../client/scope/scope.js';
import type { Tenure, TenureUser } from '../client/holding/tenure.js';
import { type HoldTrace, traceHold } from '../client/tracing.js';
import { answerWithin } from '../client/waiting/answer-within.js';
import { type AskedHolder, describeAsker } from '../api/asker.js';
import { LockAbortedError, LockConfigError, type LockLostError } from '../api/errors.js';
import type { Lease } from '../api/lock.js';
import { inQuotes } from '../runtime/text.js';
import { clearTimer } from '../runtime/runtime.js';
import type { AcquireCall } from './call.js';
import type { LeaseShare } from './held-lease.js';
import { watchOutliving } from './lease-reports.js';
import { orderGroup } from './order.js';
import type { StoreLock } from './store-lock.js';

const NONE: LeaseShare[] = [];

/**
 * The use of a tenure by one owner, from its acquisition to its last release. Nested acquisitions of one scope share
 * it. The count is kept here and not in Redis, so that a repeated command cannot count twice.
 */
export class Hold implements TenureUser, ScopedHold {
  /** The owner's own token, although each hand-off of the tenure increases the token. */
  readonly fencingToken: number;
  loss: LockLostError | undefined;
  /** Changed in place: a callback may re-enter its lock thousands of times at once. */
  private members = NONE;
  /** Set if another holder handed the lock directly to this one. */
  readonly handedOver: 'local' | 'fleet' | undefined;
  private endedAt: number | undefined;
  /** The latest `keepUntil` of released leases. Undefined in most holds, because a number takes 16 bytes of its own. */
  private keepUntil: number | undefined;
  private controller: AbortController | undefined;
  private requestController: AbortController | undefined;
  private request: Error | undefined;
  private readonly trace: HoldTrace | undefined;
  private readonly longHold: NodeJS.Timeout | undefined;
  readonly apart: object | undefined;

  constructor(
    readonly tenure: Tenure,
    readonly client: LockClient,
    readonly kind: StoreLock['kind'],
    label: string,
    { trace, apart }: AcquireCall,
    private readonly since: number,
  ) {
    const { name, owner, fencingToken, handoffs } = tenure;
    this.apart = apart;
    this.fencingToken = fencingToken;
    this.loss = tenure.loss;
    tenure.user = this;
    tenure.label = label;
    if (handoffs > 0) this.handedOver = 'local';
    else if (tenure.handedOver) this.handedOver = 'fleet';
    const { instance, longHoldTime } = client.options;
    const { handedOver } = this;
    this.trace = traceHold(() => ({
      name,
      label,
      kind,
      instance,
      client: client.id,
      owner,
      fencingToken,
      handedOver,
      renewed: !tenure.isFixed,
      acquisition: trace?.context,
    }));
    if (longHoldTime < Infinity) {
      this.longHold = idleTimerAt(this.since + longHoldTime, () => {
        if (!this.held) return;
        client.events.next({ type: 'held-long', name, label, owner, heldFor: Math.round(this.heldFor) });
      });
    }
    if (this.loss !== undefined) this.end();
  }

  /** On the monotonic clock. */
  get lostAt(): number | undefined {
    return this.loss === undefined ? undefined : this.endedAt;
  }

  /** ms until now, or until the end of the hold. */
  get heldFor(): number {
    return (this.endedAt ?? now()) - this.since;
  }

  /** The leases that have not been released, the first one first, which later ones have re-entered. */
  get leases(): readonly LeaseShare[] {
    return this.members;
  }

  get name(): string {
    return this.tenure.name;
  }

  get owner(): string {
    return this.tenure.owner;
  }

  get endsAt(): number {
    return this.tenure.isFixed ? this.tenure.deadline : Infinity;
  }

  get clientId(): string {
    return this.client.id;
  }

  get group(): string {
    const { label, name } = this.tenure;
    return orderGroup(name, label === this.kind ? undefined : label);
  }

  /** The number of leases; 0 after the end of the hold. */
  get count(): number {
    return this.leases.length;
  }

  get held(): boolean {
    return this.count > 0 && this.tenure.held;
  }

  isInUse(around?: Scope): boolean {
    return this.held && this.leases.some(({ inside }) => inside?.isOfCallback(around) === true);
  }

  /** Made on first use, because most holders never read it. */
  get signal(): AbortSignal {
    this.controller ??= new AbortController();
    if (this.loss !== undefined) this.controller.abort(this.loss);
    if (this.count > 0) this.tenure.announceIfOver();
    return this.controller.signal;
  }

  /** Aborts when another caller asks for the lock. Made on first use. */
  get releaseRequested(): AbortSignal {
    this.requestController ??= new AbortController();
    if (this.request !== undefined) this.requestController.abort(this.request);
    return this.requestController.signal;
  }

  onLost(error: LockLostError): void {
    this.loss = error;
    this.end();
    // Code of any scope may notice a loss: a read of a lease, or a timer of another lock.
    runOutsideScopes(() => {
      this.controller?.abort(error);
    });
  }

  onReleaseRequested(asker: AskedHolder): void {
    if (this.count === 0) return;
    const { name, owner, label } = this.tenure;
    const request = new Error(`Asked to release the lock "${inQuotes(name)}" by ${describeAsker(asker)}`);
    this.request ??= request;
    this.client.events.next({ type: 'release-requested', name, label, owner, ...asker });
    runOutsideScopes(() => {
      this.requestController?.abort(request);
    });
  }

  onHandedOff(): void {
    this.end();
  }

  /** Adds a lease. */
  join(lease: LeaseShare): void {
    // A new array has room for one lease only, and most holds have one.
    if (this.members.length === 0) this.members = [lease];
    else this.members.push(lease);
  }

  /** @throws LockConfigError if `maxHoldTime` ends the hold before a lease of that length */
  assertLasting(leaseTime: number): void {
    const { name, timeToHold } = this.tenure;
    if (leaseTime <= timeToHold) return;
    throw new LockConfigError(
      'maxHoldTime',
      `leaves this hold ${String(Math.floor(timeToHold))} ms, so its lease cannot last for ${String(leaseTime)} ms`,
      { key: name },
    );
  }

  /**
   * Extends the hold for one of its leases. The other leases may end sooner.
   * @param until the moment of the last question to a store whose limit does not allow that length yet
   */
  async extend(
    lease: LeaseShare,
    leaseTime: number,
    signal: AbortSignal | undefined,
    until = 0,
  ): Promise<void> {
    const { tenure, client } = this;
    if (signal?.aborted === true) throw new LockAbortedError(tenure.name, signal.reason);
    if (client.leaseBounds.exceeds(leaseTime)) {
      const admitted = client.leaseBounds.admit(
        tenure.name,
        { promised: leaseTime, wished: leaseTime },
        until,
      );
      await answerWithin(admitted, tenure.name, { signal });
      lease.shown.assertHeld();
    }
    // Set before the answer, because another lease may be released meanwhile.
    if (tenure.isFixed) lease.needsUntil = Math.max(endOf(lease), now() + leaseTime);
    const extended = client.watchdog.extend(tenure, leaseTime).then(() => {
      if (this.count > 0 && !this.leases.includes(lease)) this.shorten();
    });
    await answerWithin(extended, tenure.name, { signal });
  }

  /** ms for which the store keeps the lock from other owners after a release now: the latest time of all leases counts. */
  get keepFor(): number | undefined {
    let until = this.keepUntil ?? -Infinity;
    for (const { keepUntil } of this.leases) until = Math.max(until, keepUntil);
    if (until === -Infinity) return undefined;
    const keepFor = Math.ceil(until - now());
    return keepFor > 0 ? keepFor : undefined;
  }

  /**
   * Releases one of the leases, and with the last one the lock.
   * @param at now
   */
  leave(lease: LeaseShare, at: number): Promise<void> {
    // All other leases have entered the first lease of the hold, and no other one. Leases by hand of one scope may be
    // released in any order.
    const isEntered = lease === this.leases[0] && lease.since === this.since && !lease.isByHand;
    this.depart(lease, at);
    if (this.count > 0) {
      if (isEntered) watchOutliving(this, lease, [...this.leases]);
      this.shorten();
      this.client.onLeft?.();
      return Promise.resolve();
    }
    const { label } = this.tenure;
    return this.client.release(this.tenure).then((loss) => {
      this.left(label, loss);
    });
  }

  /** Removes a lease before the answer of the store, because the next holder may begin before that. */
  depart(lease: LeaseShare, at: number): void {
    const { keepUntil, given } = lease;
    if (given !== undefined) this.client.holdWatch.byHand.delete(lease);
    if (keepUntil > (this.keepUntil ?? -Infinity)) this.keepUntil = keepUntil;
    const index = this.members.indexOf(lease);
    if (index >= 0) this.members.splice(index, 1);
    if (this.count === 0) this.endedAt ??= at;
  }

  /** Called after the release of the last lease, with the store's answer. */
  left(label: string, loss: LockLostError | undefined): void {
    if (loss !== undefined && this.loss === undefined) this.onLost(loss);
    if (this.loss !== undefined) return;
    this.end();
    const { name, owner } = this.tenure;
    this.client.events.next({ type: 'released', name, label, owner, heldFor: this.heldFor });
  }

  private end(): void {
    this.endedAt ??= now();
    // Leases that are lost may be thrown away.
    for (const lease of this.members) this.client.holdWatch.byHand.delete(lease);
    clearTimer(this.longHold);
    this.trace?.end(this.heldFor, this.loss);
  }

  /** Shortens a fixed lease that a released lease had extended. A `minHoldTime` outlives its lease. */
  private shorten(): void {
    const { tenure } = this;
    if (!tenure.isFixed) return;
    const until = Math.max(this.keepUntil ?? -Infinity, ...this.leases.map(endOf));
    // The next look may be due only after the new end.
    if (tenure.shorten(until)) this.client.watchdog.watch(tenure, now());
  }
}

const endOf = ({ needsUntil }: LeaseShare): number => needsUntil ?? Infinity;

/** The present leases of a client. */
export function leasesOf({ tenures }: LockClient): readonly Lease[] {
  const leases: Lease[] = [];
  for (const { user } of tenures.all)
    if (user instanceof Hold && user.held) for (const { shown } of user.leases) leases.push(shown);
  return leases;
}
