import { now } from '../core/deadline.js';
import type { LockClient } from '../core/lock-client.js';
import type { Scope, ScopedHold } from '../core/scope.js';
import type { Tenure, TenureHolder } from '../core/tenure.js';
import type { LockLostError } from '../lock.errors.js';
import type { Lease } from './lock.js';

/**
 * One owner's use of a tenure, from its acquisition to its last release. Nested acquisitions of the same scope share
 * it: the count lives here and not in Redis, so that a command sent twice cannot count twice.
 */
export class Hold implements TenureHolder, ScopedHold {
  count = 1;
  /** Those that share it and have not been released. */
  leases: readonly Lease[] = [];
  /** Grows at every hand-off of the tenure, but not for this owner. */
  readonly fencingToken: number;
  loss: LockLostError | undefined;
  private readonly since = now();
  private keepUntil = -Infinity;
  private controller: AbortController | undefined;

  constructor(
    readonly tenure: Tenure,
    private readonly client: LockClient,
    private readonly scope: Scope | undefined,
    readonly scopeKey: string,
  ) {
    this.fencingToken = tenure.fencingToken;
    this.loss = tenure.loss;
    tenure.holder = this;
    scope?.add(scopeKey, this);
  }

  get name(): string {
    return this.tenure.name;
  }

  get held(): boolean {
    return this.count > 0 && this.tenure.held;
  }

  /** Made when somebody asks for it: most holders never do. */
  get signal(): AbortSignal {
    if (this.controller === undefined) {
      this.controller = new AbortController();
      if (this.loss !== undefined) this.controller.abort(this.loss);
    }
    if (this.count > 0) this.tenure.announceIfOver();
    return this.controller.signal;
  }

  onLost(error: LockLostError): void {
    this.loss = error;
    this.controller?.abort(error);
  }

  /**
   * One of the leases that share it is given back; with the last one the lock is.
   * @param keepUntil until when nobody else is to get the lock; the latest of what the leases say counts
   */
  async leave(keepUntil: number): Promise<void> {
    this.keepUntil = Math.max(this.keepUntil, keepUntil);
    if (--this.count > 0) return;
    this.scope?.remove(this.scopeKey, this);
    const { name, owner } = this.tenure;
    const keepFor = Math.ceil(this.keepUntil - now());
    const loss = await this.client.release(this.tenure, keepFor > 0 ? keepFor : undefined);
    if (loss !== undefined && this.loss === undefined) this.onLost(loss);
    if (this.loss === undefined) {
      this.client.events.next({ type: 'released', name, owner, heldFor: now() - this.since });
    }
  }
}
