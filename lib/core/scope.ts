import { AsyncLocalStorage } from 'node:async_hooks';

/** What a scope holds, under a key that names the client and the lock. */
export interface ScopedHold {
  /** How many leases share it; 0 when it is over. */
  readonly count: number;
}

/**
 * An async context: what a thread is to Redisson. Whatever runs inside re-enters the locks that are held here or
 * further out. Scopes are local knowledge; the store never sees them.
 */
export class Scope {
  /** What ran here is over. Work that it left behind finds nothing new here, and adds nothing. */
  private ended = false;
  private readonly holds = new Map<string, ScopedHold>();
  private readonly parent: Scope | undefined;
  /** The lease that this scope was opened for. */
  lease: unknown;

  constructor(parent: Scope | undefined) {
    this.parent = parent?.alive();
  }

  find(key: string): ScopedHold | undefined {
    for (let scope = this.alive(); scope !== undefined; scope = scope.parent?.alive()) {
      const hold = scope.holds.get(key);
      if (hold !== undefined && hold.count > 0) return hold;
    }
    return undefined;
  }

  add(key: string, hold: ScopedHold): void {
    this.holds.set(key, hold);
  }

  remove(key: string, hold: ScopedHold): void {
    if (this.holds.get(key) === hold) this.holds.delete(key);
  }

  end(): void {
    this.ended = true;
    this.lease = undefined;
  }

  /** This scope, or the nearest one further out that still runs. */
  alive(): Scope | undefined {
    // eslint-disable-next-line @typescript-eslint/no-this-alias -- walks outwards from here
    let scope: Scope | undefined = this;
    while (scope?.ended === true) scope = scope.parent;
    return scope;
  }
}

/** One storage for all copies of this package in the process, so that they agree on where work runs. */
const STORAGE = Symbol.for('nestjs-distributed-lock.scopes');
const shared = globalThis as { [STORAGE]?: AsyncLocalStorage<Scope> | undefined };
const storage = (shared[STORAGE] ??= new AsyncLocalStorage<Scope>());

export const currentScope = (): Scope | undefined => storage.getStore()?.alive();

export const runInScope = <T>(scope: Scope, callback: () => T): T => storage.run(scope, callback);
