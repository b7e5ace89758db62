import type { DeadlockStep } from '../../api/deadlock.js';
import type { StoredLock } from '../../store/lock-store.js';
import type { Wanted } from './blockers.js';

/** A caller of this process that waits for one lock while it holds others. */
export interface NestedWait extends Wanted {
  readonly id: string;
  /** The client that waits. */
  readonly clientId: string;
  /** Time of day, ms. */
  readonly since: number;
  readonly name: string;
  readonly label: string;
  /** The label of its instance. */
  readonly process: string;
  /** The owners of what it holds now. */
  readonly holds: readonly string[];
  /** The names of the same. */
  readonly heldNames: readonly string[];
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

/** Waits of this process, and how many of them want each name. */
export class NestedWaits {
  private readonly waits = new Set<NestedWait>();
  private readonly wanted = new Map<string, number>();

  get size(): number {
    return this.waits.size;
  }

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
   * Whether a wait may be a member of a deadlock among these: another one wants what it holds. That costs nothing, and
   * spares thousands of callers that wait for one lock the question to the store.
   */
  mayBlock({ heldNames }: NestedWait): boolean {
    return heldNames.some((name) => this.wanted.has(name));
  }
}

/** The nested waits of this process, of all copies of this package. */
const WAITS = Symbol.for('nestjs-distributed-lock.nested-waits');
const shared = globalThis as { [WAITS]?: NestedWaits | undefined };
export const nestedWaits = (shared[WAITS] ??= new NestedWaits());
