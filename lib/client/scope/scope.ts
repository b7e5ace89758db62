import { AsyncLocalStorage } from 'node:async_hooks';

/** What a scope holds, under a key that names the client and the lock. */
export interface ScopedHold {
  /** The name of the lock as the caller gave it. */
  readonly name: string;
  readonly held: boolean;
  /** The client whose lock it is. */
  readonly clientId: string;
  readonly owner: string;
  /** When it ends by itself, on the monotonic clock: a fixed lease. Infinity where it is renewed. */
  readonly endsAt: number;
  /** Its label; its name where it has no label of its own. */
  readonly group: string;
  /** A callback runs under it. */
  readonly isInUse: boolean;
  /** The call that took it with `reentrant: false`, and alone may use it. Undefined where all of the scope may. */
  readonly apart?: object | undefined;
}

/**
 * How many scopes outwards are looked at for the locks around an acquisition. Work that starts its successor under a lock,
 * again and again, makes an endless chain of scopes.
 */
const NEAR = 32;
const NOTHING: readonly ScopedHold[] = [];

/**
 * An async context: what a thread is to Redisson. Work inside re-enters the locks that are held here or further out. Scopes
 * are local knowledge; the store never sees them.
 *
 * A scope that was opened for a lock holds that lock and nothing else. The work in it may be the requests of a server that
 * the holder has started, and two of these requests must not count as one owner.
 */
export class Scope {
  /** The work of this scope is over. Work that it left behind finds nothing here. */
  private ended = false;
  /** Each hold with the number of leases that hold it for this scope. */
  private readonly held = new Map<string, Map<ScopedHold, number>>();
  private parent: Scope | undefined;
  /**
   * How many scopes among this one, its outer scopes and their other branches hold each key. Most acquisitions find that
   * none does, and need not walk outwards through all of them.
   */
  private readonly known: Map<string, number>;
  /** The lease that this scope was opened for. */
  lease: { readonly name: string; readonly fencingTokens: ReadonlyMap<string, number> } | undefined;
  /**
   * For a scope that is apart from others or accompanies one: the holds around it, of which it shares none. The scopes of
   * these holds are not kept: work that starts its successor apart, again and again, would make an endless chain of them.
   */
  private around: readonly ScopedHold[] = [];

  /** @param ownsHandMade whether a lease that is acquired by hand directly in it belongs to it */
  private constructor(
    parent: Scope | undefined,
    readonly ownsHandMade: boolean,
    private readonly kind?: 'callback' | 'unlocked',
  ) {
    this.parent = parent?.alive();
    this.known = this.parent?.known ?? new Map<string, number>();
  }

  /** For the holds of one acquisition. */
  static within(parent: Scope | undefined): Scope {
    return new Scope(parent, false);
  }

  /** For the holds of one acquisition, and for the callback that runs under them. It ends with the callback. */
  static ofCallback(parent: Scope | undefined): Scope {
    return new Scope(parent, false, 'callback');
  }

  /** For work that would run under a lock if the module's `enabled` were not false. */
  static unlocked(parent: Scope | undefined): Scope {
    return new Scope(parent, false, 'unlocked');
  }

  /** Shares no lock with its surroundings, and owns the leases that are acquired by hand in it. */
  static apart(around: Scope | undefined): Scope {
    const scope = new Scope(undefined, true);
    if (around !== undefined) scope.around = [...around.above()].filter((hold) => hold.held);
    return scope;
  }

  /** For a call that a lock waits for, without being of its scope: the call shares no lock of that scope. */
  static accompanying(parent: Scope | undefined, around: Scope): Scope {
    const scope = new Scope(parent, parent?.ownsHandMade === true, 'callback');
    scope.around = [...around.above()].filter((hold) => hold.held);
    return scope;
  }

  /** @param apart the call that looks, if it shares no holds with others */
  find(key: string, apart?: object): ScopedHold | undefined {
    if (!this.known.has(key)) return undefined;
    for (let scope = this.alive(); scope !== undefined; scope = scope.outer()) {
      const holds = scope.held.get(key);
      if (holds !== undefined) for (const hold of holds.keys()) if (hold.apart === apart) return hold;
    }
    return undefined;
  }

  /** The holds under the key, of all calls. */
  holdsOf(key: string): Iterable<ScopedHold> {
    return this.known.has(key) ? new Set(this.all(key)) : NOTHING;
  }

  /** Whether a lock of that name, or any lock, is held here or further out. */
  holds(name: string | undefined): boolean {
    for (const hold of this.all()) if ((name === undefined || hold.name === name) && hold.held) return true;
    return false;
  }

  /** Whether this work runs without its lock on purpose. */
  passesThrough(): boolean {
    for (let scope = this.alive(); scope !== undefined; scope = scope.outer()) {
      if (scope.kind === 'unlocked') return true;
    }
    return false;
  }

  /** Whether work that runs here is part of the work under a lock, including a lock that is not re-entered here. */
  isUnderLock(): boolean {
    for (const hold of this.above()) if (hold.held) return true;
    return false;
  }

  /** Whether work that runs here is part of a callback under a lock, including a lock that is not re-entered here. */
  isOfCallback(): boolean {
    for (let scope = this.alive(); scope !== undefined; scope = scope.outer()) {
      if (scope.kind === 'callback' || scope.around.some((hold) => hold.isInUse)) return true;
    }
    return false;
  }

  /** What is held around an acquisition here, including locks that are not re-entered here. Most have nothing around them. */
  near(): readonly ScopedHold[] {
    let found: ScopedHold[] | undefined;
    let scope = this.alive();
    for (let steps = 0; scope !== undefined && steps < NEAR; steps++, scope = scope.outer()) {
      for (const holds of scope.held.values())
        for (const hold of holds.keys()) if (hold.held) (found ??= []).push(hold);
      for (const hold of scope.around) if (hold.held) (found ??= []).push(hold);
    }
    return found ?? NOTHING;
  }

  /**
   * The lease that this scope, or the nearest one further out, was opened for: of the lock of that name, also among several,
   * or of any.
   */
  innermostLease(name?: string): unknown {
    for (let scope = this.alive(); scope !== undefined; scope = scope.outer()) {
      const { lease } = scope;
      if (lease === undefined) continue;
      if (name === undefined || lease.name === name || lease.fencingTokens.has(name)) return lease;
    }
    return undefined;
  }

  /** @returns a function that takes it back, for the lease that has added it */
  add(key: string, hold: ScopedHold): () => void {
    const holds = this.held.get(key);
    if (holds === undefined) {
      this.held.set(key, new Map([[hold, 1]]));
      this.known.set(key, (this.known.get(key) ?? 0) + 1);
    } else {
      holds.set(hold, (holds.get(hold) ?? 0) + 1);
    }
    return () => {
      this.remove(key, hold);
    };
  }

  end(): void {
    this.ended = true;
    this.lease = undefined;
    this.outer();
  }

  /** This scope, or the nearest one further out that still runs. */
  alive(): Scope | undefined {
    if (!this.ended) return this;
    let found = this.parent;
    while (found?.ended === true) found = found.parent;
    // Work that starts its successor and ends makes a chain of ended scopes. The chain must neither be walked again by each
    // of its thousands of members, nor be kept by the last one.
    let scope = this.parent;
    while (scope !== undefined && scope !== found) {
      const next: Scope | undefined = scope.parent;
      scope.parent = found;
      scope = next;
    }
    this.parent = found;
    return found;
  }

  /** The nearest scope further out that still runs. */
  private outer(): Scope | undefined {
    this.parent = this.parent?.alive();
    return this.parent;
  }

  /** What is held here, further out, and around a scope that is apart from it. */
  private *above(): Generator<ScopedHold> {
    for (let scope = this.alive(); scope !== undefined; scope = scope.outer()) {
      for (const holds of scope.held.values()) yield* holds.keys();
      yield* scope.around;
    }
  }

  private remove(key: string, hold: ScopedHold): void {
    const holds = this.held.get(key);
    const times = holds?.get(hold) ?? 0;
    if (times > 1) holds?.set(hold, times - 1);
    else if (holds?.delete(hold) === true && holds.size === 0) {
      this.held.delete(key);
      const others = (this.known.get(key) ?? 0) - 1;
      if (others > 0) this.known.set(key, others);
      else this.known.delete(key);
    }
  }

  /** What is held here and further out, under one key or any. */
  private *all(key?: string): Generator<ScopedHold> {
    for (let scope = this.alive(); scope !== undefined; scope = scope.outer()) {
      const found = key === undefined ? scope.held.values() : [scope.held.get(key)];
      for (const holds of found) if (holds !== undefined) yield* holds.keys();
    }
  }
}

/** One storage for all copies of this package in the process, so that they agree on the scope of running code. */
const STORAGE = Symbol.for('nestjs-distributed-lock.scopes');
const shared = globalThis as { [STORAGE]?: AsyncLocalStorage<Scope | undefined> | undefined };
const storage = (shared[STORAGE] ??= new AsyncLocalStorage<Scope | undefined>());

/** The scope whose locks are re-entered here, together with the locks of its outer scopes. */
export const currentScope = (): Scope | undefined => storage.getStore()?.alive();

/** The scope that owns the leases that are acquired by hand here. Everywhere else such a lease is an owner of its own. */
export const owningScope = (): Scope | undefined => {
  const scope = storage.getStore();
  return scope?.ownsHandMade === true ? scope : undefined;
};

export const runInScope = <T>(scope: Scope, callback: () => T): T => storage.run(scope, callback);

/**
 * For callbacks of other code than the code that runs here, such as listeners. The locks that are held here do not belong
 * to them.
 */
export const runOutsideScopes = <T>(callback: () => T): T =>
  // To leave costs more than most callbacks do.
  storage.getStore() === undefined ? callback() : storage.run(undefined, callback);

/** For a callback that code outside of all scopes calls: it runs in the scope of this moment. */
export const inThisScope = <T>(callback: () => T): (() => T) => {
  const scope = storage.getStore();
  return () => storage.run(scope, callback);
};
