import type {
  AcquireReply,
  AcquireRequest,
  HoldState,
  LockStore,
  NodeHealth,
  ReleaseRequest,
  RenewRequest,
  StoredLock,
  Subscription,
} from '../lock-store.js';

interface StoredHold {
  owner: string;
  expiresAt: number;
  since: number;
}

/** Microseconds since the epoch that never go back, as the Redis scripts take them from the server. */
const microseconds = () => Math.floor((performance.timeOrigin + performance.now()) * 1000);

/**
 * Locks in this process's memory: for tests and development. Behaves as the Redis store does, expiry included.
 * Services that are given the same instance compete as two processes on one Redis would.
 */
export class MemoryLockStore implements LockStore {
  private readonly holds = new Map<string, StoredHold>();
  private readonly listeners = new Map<string, Set<() => void>>();
  /** One counter for all names is enough to make every token greater than the last, and leaves nothing behind. */
  private lastToken = 0;

  acquire({ name, owner, leaseTime }: AcquireRequest): Promise<AcquireReply> {
    const hold = this.find(name);
    const now = performance.now();
    if (hold !== undefined && hold.owner !== owner) {
      return Promise.resolve({
        granted: false,
        retryAfter: hold.expiresAt - now,
        holder: hold.owner,
      });
    }
    this.lastToken = Math.max(this.lastToken + 1, microseconds());
    const since = hold?.since ?? Date.now();
    this.holds.set(name, { owner, expiresAt: now + leaseTime, since });
    return Promise.resolve({ granted: true, fencingToken: this.lastToken });
  }

  renew(requests: readonly RenewRequest[]): readonly Promise<HoldState>[] {
    return requests.map(({ name, owner, leaseTime }) => {
      const hold = this.find(name);
      if (hold?.owner !== owner) return Promise.resolve(hold === undefined ? 'deleted' : 'taken');
      hold.expiresAt = Math.max(hold.expiresAt, performance.now() + leaseTime);
      return Promise.resolve('held');
    });
  }

  release({ name, owner, fencingToken, keepFor }: ReleaseRequest): Promise<boolean> {
    const hold = this.find(name);
    if (hold?.owner !== owner) return Promise.resolve(false);
    this.lastToken = Math.max(this.lastToken, fencingToken ?? 0);
    if (keepFor === undefined) return this.forceRelease(name);
    hold.expiresAt = performance.now() + keepFor;
    this.announce(name);
    return Promise.resolve(true);
  }

  forceRelease(name: string): Promise<boolean> {
    const held = this.find(name) !== undefined;
    this.holds.delete(name);
    if (held) this.announce(name);
    return Promise.resolve(held);
  }

  subscribe(name: string, onWake: () => void): Promise<Subscription> {
    const listeners = this.listeners.get(name) ?? new Set();
    this.listeners.set(name, listeners.add(onWake));
    return Promise.resolve({
      active: true,
      close: () => {
        listeners.delete(onWake);
        if (listeners.size === 0 && this.listeners.get(name) === listeners) this.listeners.delete(name);
      },
    });
  }

  inspect(name: string): Promise<StoredLock | null> {
    const hold = this.find(name);
    if (hold === undefined) return Promise.resolve(null);
    const remainingTime = hold.expiresAt - performance.now();
    return Promise.resolve({
      holders: [{ owner: hold.owner, remainingTime, since: hold.since }],
      fencingToken: this.lastToken,
      listeners: this.listeners.get(name)?.size ?? 0,
    });
  }

  health(): Promise<readonly NodeHealth[]> {
    return Promise.resolve([{ node: 'memory', status: 'up', latency: 0, error: undefined }]);
  }

  onConnectionChange(): void {
    // Memory is always there.
  }

  close(): Promise<void> {
    // Nothing was opened. Other services may share this instance, so the locks stay.
    return Promise.resolve();
  }

  private find(name: string): StoredHold | undefined {
    const hold = this.holds.get(name);
    if (hold === undefined || hold.expiresAt > performance.now()) return hold;
    this.holds.delete(name);
    return undefined;
  }

  /** Asynchronous like a message, so that nobody is woken inside the releaser's own call. */
  private announce(name: string): void {
    const listeners = this.listeners.get(name);
    const [first] = listeners ?? [];
    if (listeners === undefined || first === undefined) return;
    // Whoever was first now is last the next time: the services that share this store race as equals.
    listeners.delete(first);
    listeners.add(first);
    for (const onWake of listeners) queueMicrotask(onWake);
  }
}
