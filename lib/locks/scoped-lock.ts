import { now } from '../core/deadline.js';
import { currentScope, runInScope, Scope } from '../core/scope.js';
import { assertTime } from '../core/validation.js';
import type { Busy } from '../core/waiting.js';
import { LockConfigError, LockTimeoutError } from '../lock.errors.js';
import type { AcquireOptions, UsingOptions } from '../lock.options.js';
import type { Lease, Lock } from './lock.js';

type Callback<T> = (lease: Lease) => T | Promise<T>;

/** A lease as this package sees it: its release can leave the lock taken for a while. */
export interface OwnLease extends Lease {
  release(minHoldTime?: number): Promise<void>;
}

/** Marks our locks, so that a multi-lock knows those that another copy of this package has made. */
const BRAND = Symbol.for('nestjs-distributed-lock.lock');

export const isScopedLock = (value: unknown): value is ScopedLock =>
  typeof value === 'object' && value !== null && BRAND in value;

/** What every lock has in common: defaults, scopes, and the callback form. */
export abstract class ScopedLock implements Lock {
  abstract readonly name: string;
  /** Tells locks apart that have one name, such as the two sides of a read-write lock. */
  abstract readonly identity: string;

  readonly [BRAND] = true;

  constructor(private readonly defaultWaitTime: number) {}

  abstract isLocked(): Promise<boolean>;
  abstract remainingTime(): Promise<number>;
  abstract forceRelease(): Promise<boolean>;

  /** Re-enters what the scope holds already, or gets a new hold and puts it into the scope. */
  abstract enter(
    scope: Scope | undefined,
    options: AcquireOptions & { waitTime: number },
  ): Promise<OwnLease | Busy>;

  /** How often the scope has entered it. */
  abstract countHolds(scope: Scope | undefined): number;

  acquire(options?: AcquireOptions): Promise<Lease> {
    try {
      return this.enterOrThrow(currentScope(), options);
    } catch (error) {
      const reason = error instanceof Error ? error : new Error(String(error));
      return Promise.reject(reason);
    }
  }

  async tryAcquire(options?: AcquireOptions): Promise<Lease | null> {
    const lease = await this.enter(currentScope(), withWaitTime(options, 0));
    return 'busy' in lease ? null : lease;
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
    const { minHoldTime = 0 } = options ?? {};
    assertTime('minHoldTime', minHoldTime);
    const scope = new Scope(currentScope());
    const lease = await this.enterOrThrow(scope, options);
    scope.lease = lease;
    try {
      return await runInScope(scope, () => run(lease));
    } finally {
      scope.end();
      await lease.release(minHoldTime);
    }
  }

  isHeld(): boolean {
    return this.holdCount() > 0;
  }

  holdCount(): number {
    return this.countHolds(currentScope());
  }

  /**
   * Without an async function, whose frame each of a thousand waiters would keep.
   * @throws at once what bad options throw
   */
  private enterOrThrow(scope: Scope | undefined, options: AcquireOptions | undefined): Promise<OwnLease> {
    const askedAt = now();
    return this.enter(scope, withWaitTime(options, this.defaultWaitTime)).then((lease) => {
      if ('busy' in lease) throw new LockTimeoutError(this.name, Math.round(now() - askedAt), lease.holder);
      return lease;
    });
  }
}

function withWaitTime(
  options: AcquireOptions = {},
  defaultWaitTime: number,
): AcquireOptions & { waitTime: number } {
  if (typeof options !== 'object' || (options as unknown) === null) {
    throw new LockConfigError('options', 'must be an object', { value: options });
  }
  const { waitTime = defaultWaitTime } = options;
  return { ...options, waitTime };
}
