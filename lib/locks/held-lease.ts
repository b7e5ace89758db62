import { type Captured, siteOf } from '../client/scope/call-site.js';
import { now } from '../client/holding/deadline.js';
import { releasedError } from '../client/holding/tenure.js';
import { answerWithin } from '../client/waiting/answer-within.js';
import { assertKnownOptions, leaseTimeOf, signalOf } from '../client/validation.js';
import type { Scope } from '../client/scope/scope.js';
import type { Duration } from '../api/duration.js';
import type { AnswerOptions, HandOverOptions } from '../api/options.js';
import { wallTime } from '../runtime/runtime.js';
import { assertTravels, handOver } from './ticket/hand-over.js';
import type { Hold } from './hold.js';
import { reportAbandoned } from './lease-reports.js';
import type { Lease } from '../api/lock.js';
import { leaseJson, type OwnLease } from './own-lease.js';

const done = (): void => undefined;

/** Leases that their callers may drop without a release. The registry keeps only their shares alive. */
const unreleased = new FinalizationRegistry<LeaseShare>((share) => {
  if (share.held) reportAbandoned(share.hold, share);
});

/**
 * The part of one lease in its hold. When the lease is 1 s old, this package drops its references to the object that
 * the caller got, so that the garbage collector can find out whether any code could still release it.
 */
export class LeaseShare {
  minHoldTime = 0;
  /** The requested end of a fixed lease, on the monotonic clock; undefined for a renewed lease. */
  needsUntil: number | undefined;
  onReleased: ((releasing: Promise<void>) => void) | undefined;
  endedAt: number | undefined;
  releasing: Promise<void> | undefined;
  begunAt: Date | undefined;
  private lease: HeldLease | WeakRef<HeldLease> | undefined;
  /** The object that the caller must release: this lease, or the lease of a multi-lock. Watched from an age of 1 s on. */
  given: Lease | undefined;
  private isWatched = false;

  constructor(
    readonly hold: Hold,
    readonly label: string,
    /** The scope of the call. */
    readonly inside: Scope | undefined,
    /** Removes this lease's hold from its scope. */
    readonly forget: (() => void) | undefined,
    /** On the monotonic clock. */
    readonly since: number,
    /** The place of the call, if captured. */
    readonly site: Captured | undefined,
  ) {
    if (hold.tenure.isFixed) this.needsUntil = hold.tenure.deadline;
    hold.join(this);
  }

  get held(): boolean {
    return this.releasing === undefined && this.hold.held;
  }

  /** The caller of `acquire` has it. */
  get isByHand(): boolean {
    return this.given !== undefined || this.isWatched;
  }

  heldFor(): number {
    return (this.endedAt ?? this.hold.lostAt ?? now()) - this.since;
  }

  /** The moment until which the store keeps the lock from other owners, on the monotonic clock; -Infinity if it does not. */
  get keepUntil(): number {
    return this.minHoldTime > 0 ? this.since + this.minHoldTime : -Infinity;
  }

  /** The lease, for code other than the caller's. */
  get shown(): HeldLease {
    const lease = this.lease instanceof WeakRef ? this.lease.deref() : this.lease;
    return lease ?? (this.lease = new HeldLease(this));
  }

  /** Called once, within a second, if this process has a hold older than 1 s. */
  onLongHold(): void {
    const { given } = this;
    // Reads the stack now, because its frames keep the caller alive, and the caller keeps the lease.
    siteOf(this.site);
    const { isFixed, timeToHold } = this.hold.tenure;
    // A fixed lease ends by itself, as does a lease with a maxHoldTime.
    if (given === undefined || isFixed || timeToHold < Infinity) return;
    unreleased.register(given, this, this);
    this.isWatched = true;
    this.given = undefined;
    if (given === this.lease) this.lease = new WeakRef(this.lease);
  }

  leave(at: number): Promise<void> {
    this.forget?.();
    if (this.isWatched) unreleased.unregister(this);
    return this.hold.leave(this, at);
  }
}

export class HeldLease implements OwnLease {
  constructor(private readonly share: LeaseShare) {}

  get name(): string {
    return this.share.hold.name;
  }

  get owner(): string {
    return this.share.hold.owner;
  }

  get isShared(): boolean {
    const { queue } = this.share.hold.tenure;
    return queue?.mode === 'shared' && queue.capacity > 1;
  }

  get fencingToken(): number {
    return this.share.hold.fencingToken;
  }

  get fencingTokens(): ReadonlyMap<string, number> {
    return new Map([[this.name, this.fencingToken]]);
  }

  get label(): string {
    return this.share.label;
  }

  /** By the clock of this process at the first call, so that the value never changes. */
  get acquiredAt(): Date {
    const { share } = this;
    return (share.begunAt ??= new Date(wallTime() - (now() - share.since)));
  }

  heldFor(): number {
    return this.share.heldFor();
  }

  get signal(): AbortSignal {
    return this.share.hold.signal;
  }

  get releaseRequested(): AbortSignal {
    return this.share.hold.releaseRequested;
  }

  get held(): boolean {
    return this.share.held;
  }

  remainingTime(): number {
    return this.held ? this.share.hold.tenure.remainingTime : 0;
  }

  async extend(leaseTime: Duration, options?: AnswerOptions): Promise<void> {
    const signal = signalOf(options, 'extend');
    await this.share.hold.extend(this.share, this.extensionOf(leaseTime), signal);
  }

  extensionOf(leaseTime: Duration): number {
    const time = leaseTimeOf(leaseTime);
    this.assertHeld();
    this.share.hold.assertLasting(time);
    return time;
  }

  assertHeld(): void {
    if (!this.held) throw this.share.hold.loss ?? releasedError(this);
  }

  set minHoldTime(time: number) {
    this.share.minHoldTime = time;
  }

  giveOut(given: Lease): void {
    const { share } = this;
    const { client, loss } = share.hold;
    share.given = given;
    if (loss === undefined) client.holdWatch.byHand.set(share, true);
  }

  /** Called at the release or the hand-over of the lease. The signal reports a loss. */
  set onReleased(listener: (releasing: Promise<void>) => void) {
    this.share.onReleased = listener;
  }

  async handOver(options: HandOverOptions = {}): Promise<string> {
    assertKnownOptions(options, ['within'], 'handOver');
    const within = options.within === undefined ? undefined : leaseTimeOf(options.within, 'within');
    this.assertHeld();
    const { share } = this;
    assertTravels(share.hold);
    share.endedAt = now();
    const ticket = handOver(share.hold, share, within);
    // A later release waits for the same answer, and sends nothing.
    share.releasing = ticket.then(done, done);
    share.forget?.();
    share.onReleased?.(share.releasing);
    return await ticket;
  }

  release(options?: AnswerOptions): Promise<void> {
    const { share } = this;
    const at = (share.endedAt ??= share.hold.lostAt ?? now());
    if (share.releasing === undefined) {
      share.releasing = share.leave(at);
      share.onReleased?.(share.releasing);
    }
    return options === undefined ? share.releasing : this.released(share.releasing, options);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  toJSON(): object {
    return leaseJson(this);
  }

  private async released(releasing: Promise<void>, options: AnswerOptions): Promise<void> {
    await answerWithin(releasing, this.name, { signal: signalOf(options, 'release') });
  }
}
