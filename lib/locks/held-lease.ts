import { now } from '../core/deadline.js';
import type { LockClient } from '../core/lock-client.js';
import type { Scope } from '../core/scope.js';
import { releasedError } from '../core/tenure.js';
import { assertLeaseTime } from '../core/validation.js';
import type { Hold } from './hold.js';
import { leaseJson } from './lease-json.js';
import type { Lease } from './lock.js';

export class HeldLease implements Lease {
  private readonly since = now();
  private releasing: Promise<void> | undefined;

  constructor(
    private readonly hold: Hold,
    private readonly client: LockClient,
    /** Where it was entered again: that may go on when the scope that the hold began in is over. */
    private readonly scope?: Scope,
  ) {
    hold.leases = [...hold.leases, this];
    scope?.add(hold.scopeKey, hold);
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
    assertLeaseTime(leaseTime);
    this.assertHeld();
    await this.client.watchdog.extend(this.hold.tenure, leaseTime);
  }

  assertHeld(): void {
    if (this.held) return;
    throw this.hold.loss ?? releasedError(this);
  }

  /** @param minHoldTime ms since the acquisition for which nobody else gets the lock, even though it is given up */
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
    this.hold.leases = this.hold.leases.filter((lease) => lease !== this);
    this.scope?.remove(this.hold.scopeKey, this.hold);
    return this.hold.leave(keepUntil);
  }
}
