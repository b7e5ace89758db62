import { now } from '../core/deadline.js';
import { releasedError } from '../core/tenure.js';
import { assertLeaseTime } from '../core/validation.js';
import type { Hold } from './hold.js';
import { leaseJson } from './lease-json.js';
import type { OwnLease } from './scoped-lock.js';

export class HeldLease implements OwnLease {
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

  get signal(): AbortSignal {
    return this.hold.signal;
  }

  get held(): boolean {
    return this.releasing === undefined && this.hold.held;
  }

  remainingTime(): number {
    return this.held ? this.hold.tenure.remainingTime : 0;
  }

  async extend(leaseTime: number): Promise<void> {
    this.assertExtensible(leaseTime);
    await this.hold.extend(leaseTime);
  }

  assertExtensible(leaseTime: number): void {
    assertLeaseTime(leaseTime);
    this.assertHeld();
    this.hold.assertLasting(leaseTime);
  }

  assertHeld(): void {
    if (this.held) return;
    throw this.hold.loss ?? releasedError(this);
  }

  /** @param minHoldTime ms since the acquisition for which no other owner gets the lock, even though it is given up */
  release(minHoldTime = 0): Promise<void> {
    this.releasing ??= this.leave(this.since + minHoldTime);
    return this.releasing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  toJSON(): object {
    return leaseJson(this);
  }

  private leave(keepUntil: number): Promise<void> {
    this.forget?.();
    return this.hold.leave(this, keepUntil);
  }
}
