import { refusalOfHandedOut } from '../client/holding/late-result.js';
import type { LockClient } from '../client/lock-client.js';
import { currentScope, owningScope, runInScope, Scope } from '../client/scope/scope.js';
import { type NestedCall, WaitOfCall } from '../client/deadlock/nested-call.js';
import { AcquisitionTrace, areAcquisitionsTraced } from '../client/tracing.js';
import {
  ACQUIRE_OPTIONS,
  assertKnownOptions,
  assertOwnOptions,
  resolveAcquireOptions,
} from '../client/validation.js';
import type { Busy } from '../client/waiting/waiting.js';
import { LockConfigError } from '../api/errors.js';
import type { AcquireOptions, ReasonOptions, UsingOptions } from '../api/options.js';
import { random, sleep } from '../runtime/runtime.js';
import { asError } from '../runtime/thrown.js';
import { type AcquireCall, callOf } from './call.js';
import type { Lease, Lock } from '../api/lock.js';
import { watchLongWait } from './long-wait.js';
import { checkOrder } from './order.js';
import type { OwnLease } from './own-lease.js';
import { knownHolder, refuse, tellOfTimeout } from './refusal.js';
import type { StoreLock } from './store-lock.js';

type Callback<T> = (lease: Lease) => T | Promise<T>;

/** Marks the locks of all copies of this package, so that a multi-lock accepts each of them. */
const BRAND = Symbol.for('nestjs-distributed-lock.lock');

export const isScopedLock = (value: unknown): value is ScopedLock =>
  typeof value === 'object' && value !== null && BRAND in value;

/** Retries of a call that does not wait, if no owner got the lock, and the longest pause before each, ms. */
const MOST_UNDECIDED = 4;
const UNDECIDED_PAUSE = 10;

/** Captured frames of a caller's stack. The frames of this package come first, and a decorator adds most. */
const FRAMES = { acquire: 4, tryAcquire: 4, using: 12 } as const;

/** The common part of all locks: defaults, scopes, and the callback form. */
export abstract class ScopedLock implements Lock {
  abstract readonly name: string;
  /** Distinguishes locks of one name, such as the two sides of a read-write lock. */
  abstract readonly identity: string;

  readonly [BRAND] = true;
  abstract readonly kind: 'lock' | 'fair' | 'read' | 'write' | 'semaphore' | 'multi';

  /** @param client whose defaults apply, and which publishes the events */
  constructor(readonly client: LockClient) {}

  abstract isLocked(): Promise<boolean>;
  abstract remainingTime(): Promise<number>;
  abstract forceRelease(options?: ReasonOptions): Promise<boolean>;

  /** Re-enters the hold of the call's scope, or gets a new hold. */
  abstract acquireLease(call: AcquireCall): Promise<OwnLease | Busy>;

  /** The single-name locks that it consists of: itself, or the members of a multi-lock. */
  abstract readonly members: readonly StoreLock[];

  /** The number of leases of the scope. */
  abstract countHolds(scope: Scope | undefined): number;

  acquire(options?: AcquireOptions): Promise<Lease> {
    try {
      return this.acquireOrThrow(this.callOf(options, 'acquire'));
    } catch (error) {
      return Promise.reject(asError(error));
    }
  }

  async tryAcquire(options?: AcquireOptions): Promise<Lease | null> {
    return await this.observed(this.callOf(options, 'tryAcquire'), async (call) => {
      const lease = await this.enter(call);
      if (!('busy' in lease)) return kept(lease, call);
      const holderLabel = knownHolder(this, lease);
      if (lease.isFull === true) call.trace?.foundFull();
      if (call.waitTime > 0) tellOfTimeout(this, lease, call, holderLabel);
      return null;
    });
  }

  using<T>(callback: Callback<T>): Promise<T>;
  using<T>(options: UsingOptions, callback: Callback<T>): Promise<T>;
  async using<T>(optionsOrCallback: UsingOptions | Callback<T>, callback?: Callback<T>): Promise<T> {
    const [options, run] =
      typeof optionsOrCallback === 'function'
        ? [undefined, optionsOrCallback]
        : [optionsOrCallback, callback];
    if (typeof run !== 'function') {
      throw new LockConfigError('using', 'needs a callback', { value: run, key: this.name });
    }
    const scope = Scope.ofCallback(currentScope());
    const lease = await this.acquireOrThrow(this.callOf(options, 'using', scope));
    scope.lease = lease;
    try {
      // A lazy query starts when it is awaited, which must happen in the scope, too.
      const result = await runInScope(scope, async () => await run(lease));
      const refusal = refusalOfHandedOut(result, 'using');
      if (refusal !== undefined) await refusal;
      return result;
    } finally {
      scope.end();
      await lease.release();
    }
  }

  toJSON(): object {
    const { name, kind } = this;
    return { name, kind };
  }

  isHeld(): boolean {
    return this.holdCount() > 0;
  }

  holdCount(): number {
    return this.countHolds(currentScope());
  }

  /** The client of the member with this name. */
  clientFor(name: string): LockClient | undefined {
    return this.members.find((member) => member.name === name)?.client;
  }

  /** The label of the acquisition. */
  groupOf({ label }: Pick<AcquireCall, 'label'>): string {
    return label ?? this.kind;
  }

  /** Not an async function, because each of 1,000 waiters would keep its frame. */
  private acquireOrThrow(call: AcquireCall): Promise<Lease> {
    return this.observed(call, (observed) =>
      this.enter(observed).then((lease) =>
        'busy' in lease ? refuse(this, lease, observed) : kept(lease, observed),
      ),
    );
  }

  /**
   * Checks the locks around a call, publishes the call, and watches for a long wait, if the options ask for it.
   * @throws LockConfigError if the order of the locks is refused
   */
  private observed<T>(asked: AcquireCall, run: (call: AcquireCall) => Promise<T>): Promise<T> {
    const { longWaitTime, instance } = this.client.options;
    const call = this.nested(asked);
    let observed = run;
    if (call.waitTime > longWaitTime) {
      observed = (call) => run(call).finally(watchLongWait(this, this.groupOf(call)));
    }
    if (!areAcquisitionsTraced()) return observed(call);
    const { name, kind } = this;
    const { id } = this.client;
    const trace = new AcquisitionTrace({ name, label: this.groupOf(call), kind, instance, client: id });
    return trace.publish(() => observed({ ...call, trace }));
  }

  /** A call under other locks may be part of a deadlock. */
  private nested(call: AcquireCall): AcquireCall {
    const { client } = this;
    const { lockOrder, deadlock } = client.options;
    const { inside } = call;
    if (inside === undefined || call.waitTime === 0) return call;
    const around = inside.near();
    if (around.length === 0) return call;
    if (lockOrder !== 'off') {
      const fresh = this.members.filter((member) => member.findHold(call)?.held !== true);
      checkOrder(around, fresh, call.label);
    }
    if (deadlock === 'off') return call;
    const label = this.groupOf(call);
    const nested: NestedCall = (begun) => new WaitOfCall(client, inside, label, begun);
    return { ...call, nested };
  }

  private enter(call: AcquireCall): Promise<OwnLease | Busy> {
    if (call.failFast || call.maxWaiting < Infinity) {
      for (const member of this.members) {
        const refusal = member.refusal(call);
        if (refusal instanceof Error) return Promise.reject(refusal);
        if (refusal !== undefined) return Promise.resolve(refusal);
      }
    }
    return call.waitTime > 0 ? this.acquireLease(call) : this.askOnce(call);
  }

  /** Asks again if the lock had no owner but several callers asked at once, because otherwise none would get it. */
  private async askOnce(call: AcquireCall): Promise<OwnLease | Busy> {
    for (let times = 0; ; times++) {
      const answer = await this.acquireLease(call);
      if (!('busy' in answer) || answer.isUndecided !== true || times === MOST_UNDECIDED) return answer;
      await sleep(random() * UNDECIDED_PAUSE);
    }
  }

  /**
   * Checks the options of a call of any kind of lock, before anything else happens. No other code checks them.
   * @param scope of its callback
   * @throws LockConfigError
   */
  private callOf(
    options: UsingOptions | undefined,
    method: 'acquire' | 'tryAcquire' | 'using',
    scope?: Scope,
  ): AcquireCall {
    const { client } = this;
    const label = options?.label ?? this.kind;
    // eslint-disable-next-line @typescript-eslint/unbound-method -- not called: it marks a frame of the stack
    const site = client.capturedCalls.take(label, this[method], FRAMES[method]);
    const inside = scope ?? currentScope();
    const into = scope ?? owningScope();
    const caller = { inside, into, byHand: scope === undefined, site };
    const usual = method === 'tryAcquire' ? 0 : client.options.waitTime;
    if (options === undefined) return callOf(client, usual, caller);
    assertKnownOptions(options, ACQUIRE_OPTIONS, method);
    assertOwnOptions(options, ACQUIRE_OPTIONS);
    const given = resolveAcquireOptions(options, client.options);
    return callOf(client, Math.min(given.waitTime ?? usual, client.options.maxWaitTime), caller, given);
  }
}

function kept(lease: OwnLease, { minHoldTime, byHand }: AcquireCall): Lease {
  if (minHoldTime !== undefined) lease.minHoldTime = minHoldTime;
  if (byHand) lease.giveOut(lease);
  return lease;
}
