import { AsyncLocalStorage } from 'node:async_hooks';

/** What a scope holds, under a key that names the client and the lock. */
export interface ScopedHold {
  /** How many leases share it; 0 when it is over. */
  readonly count: number;
  /** The lock's name as the caller gave it. */
  readonly name: string;
  readonly held: boolean;
}

/**
 * An async context: what a thread is to Redisson. Whatever runs inside re-enters the locks that are held here or
 * further out. Scopes are local knowledge; the store never sees them.
 */
export class Scope {
  /** What ran here is over. Work that it left behind finds nothing new here, and adds nothing. */
  private ended = false;
  /** Each with the number of those who have put it here. */
  private readonly held = new Map<string, Map<ScopedHold, number>>();
  private readonly parent: Scope | undefined;
  /** The lease that this scope was opened for. */
  lease: { readonly name: string } | undefined;

  constructor(parent: Scope | undefined) {
    this.parent = parent?.alive();
  }

  find(key: string): ScopedHold | undefined {
    for (const hold of this.all(key)) return hold;
    return undefined;
  }

  /** How many holds there are under the key, for what is not entered again but held several times. */
  count(key: string): number {
    return [...this.all(key)].filter((hold) => hold.held).length;
  }

  /** Whether a lock of that name, or any, is held here or further out. */
  holds(name: string | undefined): boolean {
    for (const hold of this.all()) if ((name === undefined || hold.name === name) && hold.held) return true;
    return false;
  }

  /** The lease that this scope, or the nearest one further out, was opened for: of the lock of that name, or of any. */
  innermostLease(name?: string): unknown {
    for (let scope = this.alive(); scope !== undefined; scope = scope.parent?.alive()) {
      const { lease } = scope;
      if (lease !== undefined && (name === undefined || lease.name === name)) return lease;
    }
    return undefined;
  }

  add(key: string, hold: ScopedHold): void {
    const holds = this.held.get(key);
    if (holds === undefined) this.held.set(key, new Map([[hold, 1]]));
    else holds.set(hold, (holds.get(hold) ?? 0) + 1);
  }

  /** Takes back one `add`. */
  remove(key: string, hold: ScopedHold): void {
    const holds = this.held.get(key);
    const times = holds?.get(hold) ?? 0;
    if (times > 1) holds?.set(hold, times - 1);
    else if (holds?.delete(hold) === true && holds.size === 0) this.held.delete(key);
  }

  end(): void {
    this.ended = true;
    this.lease = undefined;
  }

  /** What is held here and further out, under one key or any. */
  private *all(key?: string): Generator<ScopedHold> {
    for (let scope = this.alive(); scope !== undefined; scope = scope.parent?.alive()) {
      const found = key === undefined ? scope.held.values() : [scope.held.get(key)];
      for (const holds of found) for (const hold of holds?.keys() ?? []) if (hold.count > 0) yield hold;
    }
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
const shared = globalThis as { [STORAGE]?: AsyncLocalStorage<Scope | undefined> | undefined };
const storage = (shared[STORAGE] ??= new AsyncLocalStorage<Scope | undefined>());

export const currentScope = (): Scope | undefined => storage.getStore()?.alive();

export const runInScope = <T>(scope: Scope, callback: () => T): T => storage.run(scope, callback);

/** For what is told to somebody else than whoever runs here, and must not find the locks that are held here. */
export const runOutsideScopes = <T>(callback: () => T): T => storage.run(undefined, callback);
