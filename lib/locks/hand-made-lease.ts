import type { Duration } from '../lock.duration.js';
import type { AnswerOptions, HandOverOptions } from '../lock.options.js';
import type { Lease } from './lock.js';
import type { OwnLease } from './own-lease.js';

/**
 * What the caller of `acquire` gets. When the lease has been held for a second, nothing in this package refers to it any
 * more, so that the garbage collector can tell whether any code is left that could release the lease. The watchdog refers
 * to the lease inside.
 */
export class HandMadeLease implements Lease {
  constructor(private readonly lease: OwnLease) {}

  get name(): string {
    return this.lease.name;
  }

  get owner(): string {
    return this.lease.owner;
  }

  get isShared(): boolean {
    return this.lease.isShared;
  }

  get fencingToken(): number {
    return this.lease.fencingToken;
  }

  get fencingTokens(): ReadonlyMap<string, number> {
    return this.lease.fencingTokens;
  }

  get label(): string {
    return this.lease.label;
  }

  get acquiredAt(): Date {
    return this.lease.acquiredAt;
  }

  heldFor(): number {
    return this.lease.heldFor();
  }

  get signal(): AbortSignal {
    return this.lease.signal;
  }

  get releaseRequested(): AbortSignal {
    return this.lease.releaseRequested;
  }

  get held(): boolean {
    return this.lease.held;
  }

  remainingTime(): number {
    return this.lease.remainingTime();
  }

  extend(leaseTime: Duration, options?: AnswerOptions): Promise<void> {
    return this.lease.extend(leaseTime, options);
  }

  assertHeld(): void {
    this.lease.assertHeld();
  }

  handOver(options?: HandOverOptions): Promise<string> {
    return this.lease.handOver(options);
  }

  release(options?: AnswerOptions): Promise<void> {
    return this.lease.release(options);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  toJSON(): object {
    return this.lease.toJSON();
  }
}
