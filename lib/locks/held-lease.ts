import { type Captured, siteOf } from '../client/scope/call-site.js';
import { now } from '../client/holding/deadline.js';
import { releasedError } from '../client/holding/tenure.js';
import { untilAborted } from '../client/waiting/until-aborted.js';
import { assertKnownOptions, leaseTimeOf, signalOf } from '../client/validation.js';
import type { Scope } from '../client/scope/scope.js';
import type { Duration } from '../api/duration.js';
import type { AnswerOptions, HandOverOptions } from '../api/options.js';
import { wallTime } from '../runtime/runtime.js';
import { assertTravels, handOver } from './ticket/hand-over.js';
import type { Hold } from './hold.js';
import { reportAbandoned } from './lease-reports.js';
import type { Lease } from '../api/lock.js';
import { leaseJson, type OwnLease, type Share } from './own-lease.js';

const done = (): void => undefined;

/** The leases whose callers may go without a release. The registry refers to no more than their shares. */
const unreleased = new FinalizationRegistry<LeaseShare>((share) => {
  if (share.held) reportAbandoned(share.hold, share);
});

/**
 * The part of one lease in its hold. When the lease has been held for a second, nothing in this package refers to the object
 * that its caller got any more, so that the garbage collector can tell whether any code is left that could release it.
 */
export class LeaseShare implements Share {
  minHoldTime = 0;
  needsUntil: number | undefined;
  onReleased: ((releasing: Promise<void>) => void) | undefined;
  endedAt: number | undefined;
  releasing: Promise<void> | undefined;
  begunAt: Date | undefined;
  private lease: HeldLease | WeakRef<HeldLease> | undefined;
  /** The lease that the caller has to release: this one, or that of a multi-lock. It is watched only if it lasts. */
  given: Lease | undefined;
  private isWatched = false;

  constructor(
    readonly hold: Hold,
    readonly label: string,
    readonly inside: Scope | undefined,
    /** Takes the hold out of the scope that has it by this lease. */
    readonly forget: (() => void) | undefined,
    /** On the monotonic clock. */
    readonly since: number,
    readonly site: Captured | undefined,
  ) {
    if (hold.tenure.isFixed) this.needsUntil = hold.tenure.deadline;
    hold.join(this);
  }

  get held(): boolean {
    return this.releasing === undefined && this.hold.held;
  }

  heldFor(): number {
    return (this.endedAt ?? this.hold.lostAt ?? now()) - this.since;
  }

  get keepUntil(): number {
    return this.minHoldTime > 0 ? this.since + this.minHoldTime : -Infinity;
  }

  get shown(): HeldLease {
    const lease = this.lease instanceof WeakRef ? this.lease.deref() : this.lease;
    return lease ?? (this.lease = new HeldLease(this));
  }

  onLongHold(): void {
    const { given } = this;
    // The frames of the stack refer to the caller, and the caller to the lease.
    siteOf(this.site);
    const { isFixed, timeToHold } = this.hold.tenure;
    // A fixed lease ends by itself, and so does one with a maxHoldTime.
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

/** The lease of one lock. */
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

  /** As the clock of this process says at the first question, so that it does not change. */
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
    this.share.given = given;
  }

  /** Called when it has been released or handed over. Of its loss its signal tells. */
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
    // A release waits for the same answer, and does nothing more.
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
    await untilAborted(releasing, signalOf(options, 'release'), this.name);
  }
}
