import type { DeadlockStep } from '../../lock.deadlock.js';
import type { StoredLock } from '../../port/lock-store.js';
import type { Wanted } from './blockers.js';

/** A caller of this process that waits for one lock while it holds others. */
export interface NestedWait extends Wanted {
  readonly id: string;
  /** Time of day, ms. */
  readonly since: number;
  readonly name: string;
  readonly label: string;
  /** The label of its instance. */
  readonly process: string;
  /** The owners of what it holds now. */
  readonly holds: readonly string[];
  /** It ends where it has to end; otherwise it is only told of. */
  readonly breaks: boolean;
  /** On the monotonic clock. */
  readonly begunAt: number;
  /** Whether this process may have the lock that it waits for, as far as is known. */
  readonly mayBeLocal: boolean;
  inspect(): Promise<StoredLock | null>;
  /** It is a member of a deadlock, which begins with it. @param isBroken its wait ends with that */
  found(cycle: readonly DeadlockStep[], isBroken: boolean): void;
}

/** The nested waits of this process, of all copies of this package. */
const WAITS = Symbol.for('nestjs-distributed-lock.nested-waits');
const shared = globalThis as { [WAITS]?: Set<NestedWait> | undefined };
export const nestedWaits = (shared[WAITS] ??= new Set<NestedWait>());
