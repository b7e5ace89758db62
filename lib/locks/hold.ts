import { idleTimerAt, now } from '../client/holding/deadline.js';
import type { LockClient } from '../client/lock-client.js';
import { runOutsideScopes, type ScopedHold } from '../client/scope/scope.js';
import type { Tenure, TenureUser } from '../client/holding/tenure.js';
import { type HoldTrace, traceHold } from '../client/tracing.js';
import { untilAborted } from '../client/waiting/until-aborted.js';
import { type AskedHolder, describeAsker } from '../api/asker.js';
import { LockAbortedError, LockConfigError, type LockLostError } from '../api/errors.js';
import type { LockHoldContext } from '../api/tracing-channels.js';
import { inQuotes } from '../runtime/text.js';
import { clearTimer } from '../runtime/runtime.js';
import type { AcquireCall } from './call.js';
import { watchOutliving } from './lease-reports.js';
import { orderGroup } from './order.js';
import type { Share } from './own-lease.js';

/**
 * One owner's use of a tenure, from its acquisition to its last release. Nested acquisitions of the same scope share it.
 * The count lives here and not in Redis, so that a command sent twice cannot count twice.
 */
export class Hold implements TenureUser, ScopedHold {
  /** Every hand-off of the tenure raises the token, but not for this owner. */
  readonly fencingToken: number;
  loss: LockLostError | undefined;
  /** The leases that share it: mostly one, for which no Set is made. */
  private shares: Share | Set<Share> | undefined;
  /** It came directly from another holder. */
  readonly handedOver: 'local' | 'fleet' | undefined;
  private endedAt: number | undefined;
  /** The latest `keepUntil` of the leases that have left. Mostly none, and a number takes 16 bytes of its own. */
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
    private readonly kind: LockHoldContext['kind'],
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

  /** When it was lost, on the monotonic clock. */
  get lostAt(): number | undefined {
    return this.loss === undefined ? undefined : this.endedAt;
  }

  /** ms; does not grow after its end */
  get heldFor(): number {
    return (this.endedAt ?? now()) - this.since;
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

  /** How many leases share it; 0 when it is over. */
  get count(): number {
    const { shares } = this;
    if (shares instanceof Set) return shares.size;
    return shares === undefined ? 0 : 1;
  }

  get held(): boolean {
    return this.count > 0 && this.tenure.held;
  }

  get isInUse(): boolean {
    return this.held && this.leases.some(({ inside }) => inside?.isOfCallback() === true);
  }

  /** Made on first use: most holders never ask for it. */
  get signal(): AbortSignal {
    if (this.controller === undefined) {
      this.controller = new AbortController();
      if (this.loss !== undefined) this.controller.abort(this.loss);
    }
    if (this.count > 0) this.tenure.announceIfOver();
    return this.controller.signal;
  }

  /** Aborted when another asks for the lock. Made on first use. */
  get releaseRequested(): AbortSignal {
    if (this.requestController === undefined) {
      this.requestController = new AbortController();
      if (this.request !== undefined) this.requestController.abort(this.request);
    }
    return this.requestController.signal;
  }

  /** The leases that share it and have not been released. */
  get leases(): readonly Share[] {
    const { shares } = this;
    if (shares === undefined) return NONE;
    return shares instanceof Set ? [...shares] : [shares];
  }

  /** The lease that the others have entered. */
  private get eldest(): Share | undefined {
    const { shares } = this;
    if (!(shares instanceof Set)) return shares;
    for (const share of shares) return share;
    return undefined;
  }

  onLost(error: LockLostError): void {
    this.loss = error;
    this.end();
    if (this.controller === undefined) return;
    const { controller } = this;
    // A loss is noticed in any code that looks at a lease, or in a timer that was set in the scope of another lock.
    runOutsideScopes(() => {
      controller.abort(error);
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

  onLongHold(): void {
    for (const lease of this.leases) lease.onLongHold();
  }

  onHandedOff(): void {
    this.end();
  }

  /** One more lease shares it. */
  join(lease: Share): void {
    if (this.shares === undefined) this.shares = lease;
    else if (this.shares instanceof Set) this.shares.add(lease);
    else this.shares = new Set([this.shares, lease]);
  }

  /** @throws LockConfigError when `maxHoldTime` ends the hold before a lease of that length would be over */
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
   * For one of the leases that share it: the others may end sooner.
   * @param until when a store that does not allow such a length yet is asked for the last time
   */
  async extend(lease: Share, leaseTime: number, signal: AbortSignal | undefined, until = 0): Promise<void> {
    const { tenure, client } = this;
    if (signal?.aborted === true) throw new LockAbortedError(tenure.name, signal.reason);
    if (client.leaseBounds.exceeds(leaseTime)) {
      const admitted = client.leaseBounds.admit(
        tenure.name,
        { promised: leaseTime, wished: leaseTime },
        until,
      );
      await untilAborted(admitted, signal, tenure.name);
      lease.shown.assertHeld();
    }
    // From here on: another lease may leave before the answer comes.
    if (tenure.isFixed) lease.needsUntil = Math.max(endOf(lease), now() + leaseTime);
    const extended = client.watchdog.extend(tenure, leaseTime).then(() => {
      if (this.count > 0 && !this.leases.includes(lease)) this.shorten();
    });
    await untilAborted(extended, signal, tenure.name);
  }

  /** ms for which no other owner is to get the lock if it is released now. The latest time of all leases counts. */
  get keepFor(): number | undefined {
    let until = this.keepUntil ?? -Infinity;
    for (const { keepUntil } of this.leases) until = Math.max(until, keepUntil);
    if (until === -Infinity) return undefined;
    const keepFor = Math.ceil(until - now());
    return keepFor > 0 ? keepFor : undefined;
  }

  /**
   * Gives back one of the leases that share it, and the lock with the last lease.
   * @param at now
   */
  leave(lease: Share, at: number): Promise<void> {
    const isShared = lease === this.eldest;
    this.depart(lease, at);
    if (this.count > 0) {
      if (isShared) watchOutliving(this, lease, this.leases);
      this.shorten();
      this.client.onLeft?.();
      return Promise.resolve();
    }
    const { label } = this.tenure;
    return this.client.release(this.tenure).then((loss) => {
      this.left(label, loss);
    });
  }

  /** One lease less shares it. The answer of the store may take its time, and the next holder may have begun. */
  depart(lease: Share, at: number): void {
    const { keepUntil } = lease;
    if (keepUntil > (this.keepUntil ?? -Infinity)) this.keepUntil = keepUntil;
    if (this.shares instanceof Set) this.shares.delete(lease);
    else this.shares = undefined;
    if (this.count === 0) this.endedAt ??= at;
  }

  /** The last lease is over, and the store has answered. */
  left(label: string, loss: LockLostError | undefined): void {
    if (loss !== undefined && this.loss === undefined) this.onLost(loss);
    if (this.loss !== undefined) return;
    this.end();
    const { name, owner } = this.tenure;
    this.client.events.next({ type: 'released', name, label, owner, heldFor: this.heldFor });
  }

  /** Released or lost. */
  private end(): void {
    this.endedAt ??= now();
    clearTimer(this.longHold);
    this.trace?.end(this.heldFor, this.loss);
  }

  /** A lease that has left may have prolonged a fixed one, for its own time. A `minHoldTime` outlives its lease. */
  private shorten(): void {
    const { tenure } = this;
    if (!tenure.isFixed) return;
    const until = Math.max(this.keepUntil ?? -Infinity, ...this.leases.map(endOf));
    // The next look at it may be due long after its end.
    if (tenure.shorten(until)) this.client.watchdog.watch(tenure, now());
  }
}

const NONE: readonly Share[] = [];

const endOf = ({ needsUntil }: Share): number => needsUntil ?? Infinity;
