import { now } from '../core/deadline.js';
import { refusalOfHandedOut } from '../core/late-result.js';
import type { LockClient } from '../core/lock-client.js';
import { currentScope, owningScope, runInScope, Scope } from '../core/scope.js';
import { NestedCall } from '../core/deadlock/nested-call.js';
import { AcquisitionTrace, areAcquisitionsTraced } from '../core/tracing.js';
import {
  ACQUIRE_OPTIONS,
  assertKnownOptions,
  assertOwnOptions,
  resolveAcquireOptions,
} from '../core/validation.js';
import type { Busy } from '../core/waiting.js';
import { LockConfigError, LockTimeoutError, type LockUnavailableError } from '../lock.errors.js';
import type { AcquireOptions, ReasonOptions, UsingOptions } from '../lock.options.js';
import { random, sleep } from '../lock.runtime.js';
import { isKept } from '../lock.state.js';
import { type AcquireCall, apartOf } from './acquire-call.js';
import { describeHolder } from './holder.js';
import type { Lease, Lock } from './lock.js';
import type { OwnLease } from './own-lease.js';
import { checkOrder } from './order-check.js';
import { type Holder, watchLongWait } from './long-wait.js';

type Callback<T> = (lease: Lease) => T | Promise<T>;

/** Marks the locks of this package, so that a multi-lock recognizes locks that another copy of this package has made. */
const BRAND = Symbol.for('nestjs-distributed-lock.lock');

export const isScopedLock = (value: unknown): value is ScopedLock =>
  typeof value === 'object' && value !== null && BRAND in value;

/** How often a caller that does not wait asks again where nothing was decided, and the longest pause before, ms. */
const MOST_UNDECIDED = 4;
const UNDECIDED_PAUSE = 10;
/** After a wait of so many ms, an error says what the holder is called, even if the store has to be asked. */
const LONG_WAIT = 1_000;

/** In place of a label. A caller that waits for itself, by two services of one server, finds the cause in it. */
const SIBLING = 'another LockService of this process, whose locks are not re-entered';

/** How many frames of a caller's stack are captured: those of this package come first, most where a decorator calls. */
const FRAMES = { acquire: 4, tryAcquire: 4, using: 12 } as const;

/** What every lock has in common: defaults, scopes, and the callback form. */
export abstract class ScopedLock implements Lock {
  abstract readonly name: string;
  /** Tells locks apart that have one name, such as the two sides of a read-write lock. */
  abstract readonly identity: string;
  /** The name as a location of one client's store: the two sides of a read-write lock share it. */
  abstract readonly location: string;

  readonly [BRAND] = true;
  abstract readonly kind: 'lock' | 'fair' | 'read' | 'write' | 'semaphore' | 'multi';

  /** @param client whose defaults apply, and which tells of what happens */
  constructor(readonly client: LockClient) {}

  abstract isLocked(): Promise<boolean>;
  abstract remainingTime(): Promise<number>;
  abstract forceRelease(options?: ReasonOptions): Promise<boolean>;

  /**
   * Re-enters what is held inside of one scope, or gets a new hold.
   * @param into the scope that holds it from then on; none where the lease is an owner of its own
   * @param options that have been checked
   */
  abstract acquireLease(
    inside: Scope | undefined,
    into: Scope | undefined,
    options: AcquireCall,
  ): Promise<OwnLease | Busy>;

  /** @throws LockConfigError when a hold that it would re-enter cannot last as long as the options want */
  abstract assertAcquirable(inside: Scope | undefined, options: AcquireCall): void;

  /** Why a caller is refused before anything is sent. Undefined where it is not, or re-enters. */
  abstract refusal(inside: Scope | undefined, options: AcquireCall): Busy | LockUnavailableError | undefined;

  /** The client that takes the lock of this name. */
  abstract clientFor(name: string): LockClient | undefined;

  /** The owner that callers of this process wait for, as far as it is known. */
  abstract inTheWay(): Holder | undefined;

  /** Itself, or its members, without what the scope holds already. */
  abstract notHeldIn(inside: Scope | undefined, options: AcquireCall): readonly ScopedLock[];

  /** How many times the scope has entered it. */
  abstract countHolds(scope: Scope | undefined): number;

  acquire(options?: AcquireOptions): Promise<Lease> {
    try {
      return this.acquireChecked(currentScope(), owningScope(), this.checked(options, 'acquire'));
    } catch (error) {
      const reason = error instanceof Error ? error : new Error(String(error));
      return Promise.reject(reason);
    }
  }

  async tryAcquire(options?: AcquireOptions): Promise<Lease | null> {
    const checked = this.checked(options, 'tryAcquire');
    const inside = currentScope();
    const nested = this.nestedIn(inside, checked);
    return await this.observed(nested, (options) => this.enterOrNot(inside, owningScope(), options));
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
    const checked = this.checked(options, 'using');
    const scope = Scope.ofCallback(currentScope());
    const lease = await this.acquireChecked(scope, scope, checked);
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

  private acquireChecked(
    inside: Scope | undefined,
    into: Scope | undefined,
    options: AcquireCall,
  ): Promise<Lease> {
    return this.observed(this.nestedIn(inside, options), (observed) =>
      this.enterOrThrow(inside, into, observed),
    );
  }

  /**
   * Looks at the locks around a call that may wait for others.
   * @throws LockConfigError where the order of the locks is refused
   */
  private nestedIn(inside: Scope | undefined, options: AcquireCall): AcquireCall {
    const { client } = this;
    const { lockOrder, deadlock } = client.options;
    if (inside === undefined || options.waitTime === 0) return options;
    const around = inside.near();
    if (around.length === 0) return options;
    if (lockOrder !== 'off') {
      checkOrder(around, this.notHeldIn(inside, options), options.label);
    }
    if (deadlock === 'off') return options;
    return { ...options, nested: new NestedCall(client, inside, this.groupOf(options)) };
  }

  /** Publishes a call, and tells of a long wait, where that is wanted. */
  private observed<T>(options: AcquireCall, run: (options: AcquireCall) => Promise<T>): Promise<T> {
    const { longWaitTime, instance } = this.client.options;
    let observed = run;
    if (options.waitTime > longWaitTime) {
      observed = (options) => run(options).finally(watchLongWait(this, this.groupOf(options)));
    }
    if (!areAcquisitionsTraced()) return observed(options);
    const { name, kind } = this;
    const { id } = this.client;
    const trace = new AcquisitionTrace({ name, label: this.groupOf(options), kind, instance, client: id });
    return trace.publish(() => observed({ ...options, trace }));
  }

  /** The label of what is acquired. */
  protected groupOf({ label }: Pick<AcquireCall, 'label'>): string {
    return label ?? this.kind;
  }

  private async enterOrNot(
    inside: Scope | undefined,
    into: Scope | undefined,
    options: AcquireCall,
  ): Promise<Lease | null> {
    const askedAt = now();
    const lease = await this.enter(inside, into, options);
    if (!('busy' in lease)) return kept(lease, options);
    const { name = this.name, holder } = lease;
    const holderLabel = holder && this.clientFor(name)?.labels.knownOf(holder);
    if (lease.isFull === true) options.trace?.foundFull();
    if (options.waitTime > 0) this.timedOut(lease, options, now() - askedAt, holderLabel);
    return null;
  }

  private timedOut(
    { name = this.name, holder, ...busy }: Busy,
    options: AcquireCall,
    waited: number,
    holderLabel: string | undefined,
  ): void {
    const label = this.groupOf(options);
    const reason = reasonOf(busy);
    this.client.events.next({ type: 'timed-out', name, label, waited, reason, holder, holderLabel });
  }

  /** Not an async function: each of a thousand waiters would keep its frame. */
  private enterOrThrow(
    inside: Scope | undefined,
    into: Scope | undefined,
    options: AcquireCall,
  ): Promise<Lease> {
    const askedAt = now();
    return this.enter(inside, into, options).then((lease) => {
      if (!('busy' in lease)) return kept(lease, options);
      const { name = this.name, holder, remainingTime, cycle } = lease;
      const waited = Math.round(now() - askedAt);
      const reason = reasonOf(lease);
      const client = this.clientFor(name);
      const refuse = (label: string | undefined, shown = label): never => {
        this.timedOut(lease, options, waited, label);
        const known = holder && client && describeHolder(holder, client, inside, this.groupOf(options));
        throw new LockTimeoutError(name, waited, holder, reason, remainingTime, shown, cycle, known);
      };
      const labels = client?.labels;
      if (holder === undefined || labels === undefined) return refuse(undefined);
      if (labels.isSibling(holder) && !isKept(holder)) return refuse(labels.knownOf(holder), SIBLING);
      // A caller that has waited in vain for so long does not mind one more question. Others get what is known.
      return waited < LONG_WAIT
        ? refuse(labels.knownOf(holder))
        : labels.find(holder).then((label) => refuse(label));
    });
  }

  private enter(
    inside: Scope | undefined,
    into: Scope | undefined,
    options: AcquireCall,
  ): Promise<OwnLease | Busy> {
    if (options.failFast || options.maxWaiting < Infinity) {
      const refusal = this.refusal(inside, options);
      if (refusal instanceof Error) return Promise.reject(refusal);
      if (refusal !== undefined) return Promise.resolve(refusal);
    }
    const answer = this.acquireLease(inside, into, options);
    return options.waitTime > 0 ? answer : decided(answer, () => this.acquireLease(inside, into, options));
  }

  /**
   * The only code that checks the options of a call, for every kind of lock, before anything else happens.
   * @throws LockConfigError
   */
  private checked(
    options: UsingOptions | undefined,
    method: 'acquire' | 'tryAcquire' | 'using',
  ): AcquireCall {
    const { maxHoldTime, maxWaiting, failFast, reentrant } = this.client.options;
    const waitTime = method === 'tryAcquire' ? 0 : this.client.options.waitTime;
    const byHand = method !== 'using';
    const label = options?.label ?? this.kind;
    // eslint-disable-next-line @typescript-eslint/unbound-method -- not called: it marks a frame of the stack
    const site = this.client.capturedCalls.take(label, this[method], FRAMES[method]);
    if (options === undefined) {
      return { waitTime, maxWaiting, failFast, apart: apartOf(reentrant), byHand, site };
    }
    assertKnownOptions(options, ACQUIRE_OPTIONS, method);
    assertOwnOptions(options, ACQUIRE_OPTIONS);
    const given = resolveAcquireOptions(options, maxHoldTime);
    return {
      ...given,
      waitTime: given.waitTime ?? waitTime,
      maxWaiting: given.maxWaiting ?? maxWaiting,
      failFast: given.failFast ?? failFast,
      apart: apartOf(given.reentrant ?? reentrant),
      byHand,
      site,
    };
  }
}

const reasonOf = ({ isFull, cycle }: Pick<Busy, 'isFull' | 'cycle'>): LockTimeoutError['reason'] => {
  if (cycle !== undefined) return 'deadlock';
  return isFull === true ? 'queue-full' : 'timeout';
};

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
  if (byHand === true) lease.giveOut(lease);
  return lease;
}
