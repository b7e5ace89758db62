import { type Captured, siteOf } from '../core/call-site.js';
import { now } from '../core/deadline.js';
import type { Duration } from '../lock.duration.js';
import { releasedError } from '../core/tenure.js';
import { untilAborted } from '../core/until-aborted.js';
import { assertKnownOptions, leaseTimeOf, signalOf } from '../core/validation.js';
import type { AnswerOptions, HandOverOptions } from '../lock.options.js';
import type { Scope } from '../core/scope.js';
import { wallTime } from '../lock.runtime.js';
import { HandMadeLease } from './hand-made-lease.js';
import type { Hold, Share } from './hold.js';
import { leaseJson } from './lease-json.js';
import { reportAbandoned } from './lease-reports.js';
import type { Lease } from './lock.js';
import type { OwnLease } from './own-lease.js';

const done = (): void => undefined;

/** The leases whose callers may go without a release. The registry refers to no more than the lease inside. */
const unreleased = new FinalizationRegistry<HeldLease>((lease) => {
  lease.onAbandoned();
});

export class HeldLease implements OwnLease, Share {
  minHoldTime = 0;
  needsUntil: number | undefined;
  onReleased: OwnLease['onReleased'];
  /** Its caller has it in a {@link HandMadeLease}. */
  private isByHand = false;
  /**
   * What the caller of `acquire` has got. It is watched only if it is not released soon: most leases need not pay for that.
   * Nothing here keeps it from then on.
   */
  private given: Lease | WeakRef<Lease> | undefined;
  private endedAt: number | undefined;
  private begunAt: Date | undefined;
  private releasing: Promise<void> | undefined;

  constructor(
    private readonly hold: Hold,
    readonly label: string,
    readonly inside: Scope | undefined,
    /** Takes the hold out of the scope that has it by this lease. */
    private readonly forget: (() => void) | undefined,
    private readonly since: number,
    readonly site: Captured | undefined,
  ) {
    if (hold.tenure.isFixed) this.needsUntil = hold.tenure.deadline;
    hold.join(this);
  }

  giveOut(): Lease {
    this.isByHand = true;
    const given = new HandMadeLease(this);
    this.given = given;
    return given;
  }

  giveOutIn(given: Lease): void {
    this.given = given;
  }

  get shown(): Lease {
    if (!this.isByHand) return this;
    const given = this.given instanceof WeakRef ? this.given.deref() : this.given;
    return given ?? new HandMadeLease(this);
  }

  onLongHold(): void {
    const { given } = this;
    // The frames of the stack refer to the caller, and the caller to the lease.
    siteOf(this.site);
    const { isFixed, timeToHold } = this.hold.tenure;
    // A fixed lease ends by itself, and so does one with a maxHoldTime.
    if (given === undefined || given instanceof WeakRef || isFixed || timeToHold < Infinity) return;
    unreleased.register(given, this, this);
    this.given = new WeakRef(given);
  }

  get name(): string {
    return this.hold.tenure.name;
  }

  get owner(): string {
    return this.hold.tenure.owner;
  }

  get isShared(): boolean {
    const { queue } = this.hold.tenure;
    return queue?.mode === 'shared' && queue.capacity > 1;
  }

  get fencingToken(): number {
    return this.hold.fencingToken;
  }

  get fencingTokens(): ReadonlyMap<string, number> {
    return new Map([[this.name, this.fencingToken]]);
  }

  /** As the clock of this process says at the first question, so that it does not change. */
  get acquiredAt(): Date {
    return (this.begunAt ??= new Date(wallTime() - (now() - this.since)));
  }

  heldFor(): number {
    return (this.endedAt ?? this.hold.lostAt ?? now()) - this.since;
  }

  get keepUntil(): number {
    return this.minHoldTime > 0 ? this.since + this.minHoldTime : -Infinity;
  }

  get signal(): AbortSignal {
    return this.hold.signal;
  }

  get releaseRequested(): AbortSignal {
    return this.hold.releaseRequested;
  }

  get held(): boolean {
    return this.releasing === undefined && this.hold.held;
  }

  remainingTime(): number {
    return this.held ? this.hold.tenure.remainingTime : 0;
  }

  async extend(leaseTime: Duration, options?: AnswerOptions): Promise<void> {
    const signal = signalOf(options, 'extend');
    await this.hold.extend(this, this.extensionOf(leaseTime), signal);
  }

  extensionOf(leaseTime: Duration): number {
    const time = leaseTimeOf(leaseTime);
    this.assertHeld();
    this.hold.assertLasting(time);
    return time;
  }

  assertHeld(): void {
    if (this.held) return;
    throw this.hold.loss ?? releasedError(this);
  }

  async handOver(options: HandOverOptions = {}): Promise<string> {
    assertKnownOptions(options, ['within'], 'handOver');
    const within = options.within === undefined ? undefined : leaseTimeOf(options.within, 'within');
    this.assertHeld();
    this.hold.assertTravels();
    this.endedAt = now();
    const ticket = this.hold.handOver(this, within);
    // A release waits for the same answer, and does nothing more.
    this.releasing = ticket.then(done, done);
    this.forget?.();
    this.onReleased?.(this.releasing);
    return await ticket;
  }

  release(options?: AnswerOptions): Promise<void> {
    const at = (this.endedAt ??= this.hold.lostAt ?? now());
    if (this.releasing === undefined) {
      this.releasing = this.leave(at);
      this.onReleased?.(this.releasing);
    }
    return options === undefined ? this.releasing : this.released(this.releasing, options);
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

  /** The object that its caller got is gone. */
  onAbandoned(): void {
    if (this.held) reportAbandoned(this.hold, this);
  }

  private leave(at: number): Promise<void> {
    this.forget?.();
    if (this.given instanceof WeakRef) unreleased.unregister(this);
    return this.hold.leave(this, at);
  }
}
