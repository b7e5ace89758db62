import { refusalOfHandedOut } from '../client/holding/late-result.js';
import type { LockClient } from '../client/lock-client.js';
import { currentScope, owningScope, runInScope, Scope } from '../client/scope/scope.js';
import { NestedCall } from '../client/deadlock/nested-call.js';
import { AcquisitionTrace, areAcquisitionsTraced } from '../client/tracing.js';
import {
  ACQUIRE_OPTIONS,
  assertKnownOptions,
  assertOwnOptions,
  resolveAcquireOptions,
} from '../client/validation.js';
import type { Busy } from '../client/waiting/waiting.js';
import { LockConfigError, type LockUnavailableError } from '../api/errors.js';
import type { AcquireOptions, ReasonOptions, UsingOptions } from '../api/options.js';
import { random, sleep } from '../runtime/runtime.js';
import { type AcquireCall, callOf } from './call.js';
import type { Lease, Lock } from '../api/lock.js';
import { watchLongWait } from './long-wait.js';
import { checkOrder } from './order.js';
import type { OwnLease } from './own-lease.js';
import { knownHolder, refuse, tellOfTimeout } from './multi/refusal.js';

type Callback<T> = (lease: Lease) => T | Promise<T>;

/** Marks the locks of this package, so that a multi-lock recognizes locks that another copy of this package has made. */
const BRAND = Symbol.for('nestjs-distributed-lock.lock');

export const isScopedLock = (value: unknown): value is ScopedLock =>
  typeof value === 'object' && value !== null && BRAND in value;

/** How often a caller that does not wait asks again where nothing was decided, and the longest pause before, ms. */
const MOST_UNDECIDED = 4;
const UNDECIDED_PAUSE = 10;

/** How many frames of a caller's stack are captured: those of this package come first, most where a decorator calls. */
const FRAMES = { acquire: 4, tryAcquire: 4, using: 12 } as const;

/** A lock that is no multi-lock. */
interface LockOfName {
  readonly name: string;
  readonly client: LockClient;
  /** The hold of its scope that the call shares. */
  findHold(call: AcquireCall): { readonly held: boolean } | undefined;
  /** Why a caller is refused before anything is sent. Undefined if it is not, or re-enters. */
  refusal(call: AcquireCall): Busy | LockUnavailableError | undefined;
}

/** What every lock has in common: defaults, scopes, and the callback form. */
export abstract class ScopedLock implements Lock {
  abstract readonly name: string;
  /** Tells locks apart that have one name, such as the two sides of a read-write lock. */
  abstract readonly identity: string;

  readonly [BRAND] = true;
  abstract readonly kind: 'lock' | 'fair' | 'read' | 'write' | 'semaphore' | 'multi';

  /** @param client whose defaults apply, and which tells of what happens */
  constructor(readonly client: LockClient) {}

  abstract isLocked(): Promise<boolean>;
  abstract remainingTime(): Promise<number>;
  abstract forceRelease(options?: ReasonOptions): Promise<boolean>;

  /** Re-enters what the scope of the call holds, or gets a new hold. */
  abstract acquireLease(call: AcquireCall): Promise<OwnLease | Busy>;

  /** The locks of one name each that it consists of: itself, or those of a multi-lock. */
  abstract readonly members: readonly LockOfName[];

  /** How many times the scope has entered it. */
  abstract countHolds(scope: Scope | undefined): number;

  acquire(options?: AcquireOptions): Promise<Lease> {
    try {
      return this.acquireOrThrow(this.callOf(options, 'acquire'));
    } catch (error) {
      const reason = error instanceof Error ? error : new Error(String(error));
      return Promise.reject(reason);
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
      // A query begins when it is asked for its result, which has to be in the scope, too.
      const result = await runInScope(scope, async () => await run(lease));
      const refusal = refusalOfHandedOut(result);
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

  /** The client that takes the lock of this name. */
  clientFor(name: string): LockClient | undefined {
    return this.members.find((member) => member.name === name)?.client;
  }

  /** The label of what is acquired. */
  groupOf({ label }: Pick<AcquireCall, 'label'>): string {
    return label ?? this.kind;
  }

  /** No async function waits for the lease: each of a thousand waiters would keep its frame. */
  private acquireOrThrow(call: AcquireCall): Promise<Lease> {
    return this.observed(call, (observed) =>
      this.enter(observed).then((lease) =>
        'busy' in lease ? refuse(this, lease, observed) : kept(lease, observed),
      ),
    );
  }

  /**
   * Looks at the locks around a call, publishes it, and tells of a long wait, where that is wanted.
   * @throws LockConfigError where the order of the locks is refused
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

  /** A call under other locks may wait for itself in a circle. */
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
    return { ...call, nested: new NestedCall(client, inside, this.groupOf(call)) };
  }

  private enter(call: AcquireCall): Promise<OwnLease | Busy> {
    if (call.failFast || call.maxWaiting < Infinity) {
      for (const member of this.members) {
        const refusal = member.refusal(call);
        if (refusal instanceof Error) return Promise.reject(refusal);
        if (refusal !== undefined) return Promise.resolve(refusal);
      }
    }
    const answer = this.acquireLease(call);
    return call.waitTime > 0 ? answer : decided(answer, () => this.acquireLease(call));
  }

  /**
   * The only code that checks the options of a call, for every kind of lock, before anything else happens.
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
    const waitTime = method === 'tryAcquire' ? 0 : client.options.waitTime;
    const inside = scope ?? currentScope();
    const into = scope ?? owningScope();
    const byHand = scope === undefined;
    if (options === undefined) return callOf(client, { waitTime, inside, into, byHand, site });
    assertKnownOptions(options, ACQUIRE_OPTIONS, method);
    assertOwnOptions(options, ACQUIRE_OPTIONS);
    const given = resolveAcquireOptions(options, client.options.maxHoldTime);
    // The module's own waitTime is within that limit already.
    const most = Math.min(given.waitTime ?? waitTime, client.options.maxWaitTime);
    return callOf(client, { ...given, waitTime: most, inside, into, byHand, site });
  }
}

/**
 * The answer for a caller that does not wait: busy where an owner has the lock, and not because others ask at the same moment,
 * when all of them would go without it.
 */
const decided = (
  asked: Promise<OwnLease | Busy>,
  again: () => Promise<OwnLease | Busy>,
  times = MOST_UNDECIDED,
): Promise<OwnLease | Busy> =>
  asked.then((answer) => {
    if (!('busy' in answer) || answer.isUndecided !== true || times === 0) return answer;
    return sleep(random() * UNDECIDED_PAUSE).then(() => decided(again(), again, times - 1));
  });

function kept(lease: OwnLease, { minHoldTime, byHand }: AcquireCall): Lease {
  if (minHoldTime !== undefined) lease.minHoldTime = minHoldTime;
  if (byHand) lease.giveOut(lease);
  return lease;
}
