import { AsyncLocalStorage } from 'node:async_hooks';

/** A hold of a scope. Its key names the client and the lock. */
export interface ScopedHold {
  readonly name: string;
  readonly held: boolean;
  /** The client that holds the lock. */
  readonly clientId: string;
  readonly owner: string;
  /** The end of a fixed lease, on the monotonic clock. Infinity for a renewed lease. */
  readonly endsAt: number;
  /** The label; without a label, the name. */
  readonly group: string;
  /** The call that took the lock with `reentrant: false` and alone may use it. Undefined if the whole scope may use it. */
  readonly apart?: object | undefined;
}

/**
 * Most outer scopes that are searched for locks around an acquisition. Work that repeatedly starts its successor under
 * a lock makes an endless chain of scopes.
 */
const NEAR = 32;
const NOTHING: readonly never[] = [];

/** A callback under a lock. */
interface Run {
  isOver: boolean;
}

/**
 * An async context, the counterpart of a thread in Redisson: work inside re-enters the locks of this scope and its
 * outer scopes. A scope exists in this process only; the store has no notion of it.
 *
 * A scope that was opened for a lock holds that lock and nothing else. Its work may be requests of a server that the
 * holder has started, and two such requests must not count as one owner.
 */
export class Scope {
  /** Set when the work of this scope has ended. Work that still runs in it finds none of its holds. */
  private ended = false;
  /** Each hold with its number of leases in this scope. */
  private readonly held = new Map<string, Map<ScopedHold, number>>();
  private parent: Scope | undefined;
  /**
   * Number of scopes that hold each key, shared by this tree of scopes. Most acquisitions find none, and need no walk
   * outwards.
   */
  private readonly known: Map<string, number>;
  /** The lease for which this scope was opened, until its callback has ended. */
  lease: { readonly name: string; readonly fencingTokens: ReadonlyMap<string, number> } | undefined;
  /** The scope of the innermost lease around this code: this scope or an outer one. It may have ended. */
  private leased: Scope | undefined;
  /**
   * The holds around a scope that shares none of them. Kept without their scopes: work that repeatedly starts its
   * successor apart would make an endless chain of scopes.
   */
  private around: readonly ScopedHold[] = [];
  /** The callbacks around such a scope, without their scopes for the same reason. */
  private outerRuns: readonly Run[] = NOTHING;
  /** The callback of this scope. Made on demand: most have no scope apart inside. */
  private madeRun: Run | undefined;

  /**
   * @param parent the scope of the code that opens this one. It may have ended
   * @param ownsHandMade whether leases that are acquired by hand directly in this scope belong to it
   */
  private constructor(
    parent: Scope | undefined,
    readonly ownsHandMade: boolean,
    private readonly kind?: 'callback' | 'unlocked',
  ) {
    this.parent = parent?.alive();
    this.leased = parent?.leased;
    this.known = this.parent?.known ?? new Map<string, number>();
  }

  static within(parent: Scope | undefined): Scope {
    return new Scope(parent, false);
  }

  /** For one acquisition and the callback under its locks. Ends with the callback. */
  static ofCallback(parent: Scope | undefined): Scope {
    const scope = new Scope(parent, false, 'callback');
    scope.leased = scope;
    return scope;
  }

  /** For work that runs without a lock because the module has `enabled: false`. */
  static unlocked(parent: Scope | undefined): Scope {
    return new Scope(parent, false, 'unlocked');
  }

  /** Shares no lock with its surroundings, and owns the leases that are acquired by hand in it. */
  static apart(around: Scope | undefined): Scope {
    const scope = new Scope(undefined, true);
    if (around !== undefined) {
      scope.around = [...around.above()].filter((hold) => hold.held);
      scope.outerRuns = [...around.runs()];
    }
    return scope;
  }

  /** For a call that the holder of a lock waits for, outside the holder's scope: the call shares no lock of that scope. */
  static accompanying(parent: Scope | undefined, around: Scope): Scope {
    const scope = new Scope(parent, parent?.ownsHandMade === true, 'callback');
    scope.around = [...around.above()].filter((hold) => hold.held);
    return scope;
  }

  /** @param apart the call that searches, if it shares its holds with no other call */
  find(key: string, apart?: object): ScopedHold | undefined {
    if (!this.known.has(key)) return undefined;
    for (let scope = this.alive(); scope !== undefined; scope = scope.outer()) {
      const holds = scope.held.get(key);
      if (holds !== undefined) for (const hold of holds.keys()) if (hold.apart === apart) return hold;
    }
    return undefined;
  }

  /** The holds of all calls under a key. */
  holdsOf(key: string): Iterable<ScopedHold> {
    return this.known.has(key) ? new Set(this.all(key)) : NOTHING;
  }

  /** Whether this scope or an outer one holds a lock of that name, or any lock. */
  holds(name: string | undefined): boolean {
    for (const hold of this.all()) if ((name === undefined || hold.name === name) && hold.held) return true;
    return false;
  }

  /** Whether this work runs without a lock because the module has `enabled: false`. */
  passesThrough(): boolean {
    for (let scope = this.alive(); scope !== undefined; scope = scope.outer()) {
      if (scope.kind === 'unlocked') return true;
    }
    return false;
  }

  /** The scope of the code that has made a call: outside of the scope of the call's own callback, until that has its lease. */
  get ofCaller(): Scope | undefined {
    return this.leased === this && this.lease === undefined ? this.outer() : this.alive();
  }

  /** Whether work here is part of the work under a lock, or under this one, including locks that this scope does not re-enter. */
  isUnderLock(lock?: Pick<ScopedHold, 'name' | 'clientId'>): boolean {
    for (const { held, name, clientId } of this.above())
      if (held && (lock === undefined || (name === lock.name && clientId === lock.clientId))) return true;
    return false;
  }

  /**
   * Whether work here is part of a callback under a lock, including locks that this scope does not re-enter.
   * @param around whether the innermost such callback also runs around that scope
   */
  isOfCallback(around?: Scope): boolean {
    const [innermost] = this.runs();
    return innermost !== undefined && (around === undefined || [...around.runs()].includes(innermost));
  }

  /** The holds around an acquisition here, including locks that this scope does not re-enter. Mostly there are none. */
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
   * The lease under which the code of this scope was called; undefined after its callback has ended. Code that a callback has
   * left behind gets no lease of an outer scope.
   */
  get leaseOfCallback(): unknown {
    return this.leased?.lease;
  }

  /** The innermost of the wanted leases for which this scope or an outer one was opened. */
  innermostLease(isWanted: (lease: NonNullable<Scope['lease']>) => boolean): unknown {
    for (let scope = this.alive(); scope !== undefined; scope = scope.outer()) {
      if (scope.lease !== undefined && isWanted(scope.lease)) return scope.lease;
    }
    return undefined;
  }

  /** @returns a function that removes the hold */
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
    if (this.madeRun !== undefined) this.madeRun.isOver = true;
    this.lease = undefined;
    this.outer();
  }

  /** The innermost scope, from this one outwards, whose work still runs. */
  alive(): Scope | undefined {
    if (!this.ended) return this;
    let found = this.parent;
    while (found?.ended === true) found = found.parent;
    // Work that starts its successor and ends makes a chain of ended scopes. Its thousands of members must not each
    // walk the chain again, and the last one must not keep it alive.
    let scope = this.parent;
    while (scope !== undefined && scope !== found) {
      const next: Scope | undefined = scope.parent;
      scope.parent = found;
      scope = next;
    }
    this.parent = found;
    return found;
  }

  /** The innermost outer scope whose work still runs. */
  private outer(): Scope | undefined {
    this.parent = this.parent?.alive();
    return this.parent;
  }

  /** The holds here, further out, and around scopes that share none of them. */
  private *above(): Generator<ScopedHold> {
    for (let scope = this.alive(); scope !== undefined; scope = scope.outer()) {
      for (const holds of scope.held.values()) yield* holds.keys();
      yield* scope.around;
    }
  }

  /** The callbacks that run here, further out, and around scopes that share no locks. */
  private *runs(): Generator<Run> {
    for (let scope = this.alive(); scope !== undefined; scope = scope.outer()) {
      if (scope.kind === 'callback') yield (scope.madeRun ??= { isOver: false });
      for (const run of scope.outerRuns) if (!run.isOver) yield run;
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

  /** The holds here and further out. @param key only holds under this key */
  private *all(key?: string): Generator<ScopedHold> {
    for (let scope = this.alive(); scope !== undefined; scope = scope.outer()) {
      const found = key === undefined ? scope.held.values() : [scope.held.get(key)];
      for (const holds of found) if (holds !== undefined) yield* holds.keys();
    }
  }
}

/** Shared by all copies of this package in the process, so that they agree on the scope of running code. */
const STORAGE = Symbol.for('nestjs-distributed-lock.scopes');
const shared = globalThis as { [STORAGE]?: AsyncLocalStorage<Scope | undefined> | undefined };
const storage = (shared[STORAGE] ??= new AsyncLocalStorage<Scope | undefined>());

/** The scope in which this code was called. It may have ended. */
export const callersScope = (): Scope | undefined => storage.getStore();

/** The scope whose locks, and those of its outer scopes, are re-entered here. */
export const currentScope = (): Scope | undefined => callersScope()?.alive();

/** The scope that owns leases acquired by hand here. If there is none, each such lease has its own owner. */
export const owningScope = (): Scope | undefined => {
  const scope = callersScope();
  return scope?.ownsHandMade === true ? scope : undefined;
};

export const runInScope = <T>(scope: Scope, callback: () => T): T => storage.run(scope, callback);

/** For callbacks of other code, such as listeners: the locks of the running code do not belong to them. */
export const runOutsideScopes = <T>(callback: () => T): T =>
  // `run` costs more than most callbacks do.
  storage.getStore() === undefined ? callback() : storage.run(undefined, callback);

/** Wraps a callback, which outside code calls later, so that it runs in the present scope. */
export const inThisScope = <T>(callback: () => T): (() => T) => {
  const scope = storage.getStore();
  return () => storage.run(scope, callback);
};
