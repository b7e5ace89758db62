import { now } from '../core/deadline.js';
import type { Duration } from '../lock.duration.js';
import { releasedError } from '../core/tenure.js';
import { leaseTimeOf } from '../core/validation.js';
import type { Hold, Share } from './hold.js';
import { leaseJson } from './lease-json.js';
import type { OwnLease } from './scoped-lock.js';

export class HeldLease implements OwnLease, Share {
  minHoldTime = 0;
  private readonly since = now();
  private releasing: Promise<void> | undefined;

  constructor(
    private readonly hold: Hold,
    /** Takes the hold out of the scope that has it by this lease. */
    private readonly forget: (() => void) | undefined,
  ) {
    hold.join(this);
  }

  get name(): string {
    return this.hold.tenure.name;
  }

  get owner(): string {
    return this.hold.tenure.owner;
  }

  get fencingToken(): number {
    return this.hold.fencingToken;
  }

  get fencingTokens(): ReadonlyMap<string, number> {
    return new Map([[this.name, this.fencingToken]]);
  }

  get keepUntil(): number {
    return this.since + this.minHoldTime;
  }

  get signal(): AbortSignal {
    return this.hold.signal;
  }

  get held(): boolean {
    return this.releasing === undefined && this.hold.held;
  }

  remainingTime(): number {
    return this.held ? this.hold.tenure.remainingTime : 0;
  }

  async extend(leaseTime: Duration): Promise<void> {
    await this.hold.extend(this.extensionOf(leaseTime));
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

  release(): Promise<void> {
    this.releasing ??= this.leave();
    return this.releasing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  toJSON(): object {
    return leaseJson(this);
  }

  private leave(): Promise<void> {
    this.forget?.();
    return this.hold.leave(this);
  }
}
