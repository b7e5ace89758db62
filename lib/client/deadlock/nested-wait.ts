import type { DeadlockStep } from '../../api/deadlock.js';
import type { StoredLock } from '../../store/lock-store.js';
import type { Wanted } from './blockers.js';

/** A caller of this process that waits for one lock while it holds others. */
export interface NestedWait extends Wanted {
  readonly id: string;
  readonly clientId: string;
  /** Time of day, ms. */
  readonly since: number;
  readonly name: string;
  readonly label: string;
  /** The label of the process that waits. */
  readonly process: string;
  /** The owners of the holds under which the caller waits now. */
  readonly holds: readonly string[];
  /** The names of the same holds. */
  readonly heldNames: readonly string[];
  /** Whether the library may end the wait to break a deadlock, or only reports it. */
  readonly breaks: boolean;
  /** On the monotonic clock. */
  readonly begunAt: number;
  /** False if the lock is known to be held by another process. */
  readonly mayBeLocal: boolean;
  inspect(): Promise<StoredLock | null>;
  /** Reports a deadlock that includes this wait, as its first member. @param isBroken the library ends this wait */
  found(cycle: readonly DeadlockStep[], isBroken: boolean): void;
}

/** The waits of this process, with the number of waits for each name. */
export class NestedWaits {
  private readonly waits = new Set<NestedWait>();
  private readonly wanted = new Map<string, number>();

  [Symbol.iterator](): Iterator<NestedWait> {
    return this.waits.values();
  }

  has(wait: NestedWait): boolean {
    return this.waits.has(wait);
  }

  add(wait: NestedWait): this {
    if (this.waits.has(wait)) return this;
    this.waits.add(wait);
    this.wanted.set(wait.name, (this.wanted.get(wait.name) ?? 0) + 1);
    return this;
  }

  delete(wait: NestedWait): void {
    if (!this.waits.delete(wait)) return;
    const left = (this.wanted.get(wait.name) ?? 0) - 1;
    if (left > 0) this.wanted.set(wait.name, left);
    else this.wanted.delete(wait.name);
  }

  /**
   * Whether another wait of this process wants a lock that the caller of this wait holds; if not, the wait cannot be in
   * a local deadlock. This check spares thousands of callers that wait for one lock a question to the store.
   */
  mayBlock({ heldNames }: NestedWait): boolean {
    return heldNames.some((name) => this.wanted.has(name));
  }
}

/** Shared by all copies of this package in the process. */
const WAITS = Symbol.for('nestjs-distributed-lock.nested-waits');
const shared = globalThis as { [WAITS]?: NestedWaits | undefined };
export const nestedWaits = (shared[WAITS] ??= new NestedWaits());
