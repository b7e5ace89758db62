import { kindMismatch, PLAIN } from '../kind-mismatch.js';
import type {
  AcquireAllReply,
  AcquireAllRequest,
  AcquireReply,
  AcquireRequest,
  HoldState,
  LockStore,
  QueueMessage,
  QueueRequest,
  ReleaseRequest,
  RenewRequest,
  StoredLock,
  StoreHealth,
  Subscription,
} from '../lock-store.js';
import { MemoryQueue } from './memory-queue.js';
import { MemoryTurns } from './memory-turns.js';
import { SweptMap } from './swept-map.js';

interface PlainHold {
  owner: string;
  expiresAt: number;
  since: number;
}

/**
 * Asynchronous like a message, so that nobody is woken inside the releaser's own call. Fake timers hold
 * `queueMicrotask` up, and promises not.
 */
const soon = (callback: () => void): void => void Promise.resolve().then(callback);

/** Microseconds since the epoch that never go back, as the Redis scripts take them from the server. */
const microseconds = () => Math.floor((performance.timeOrigin + performance.now()) * 1000);

/**
 * Locks in this process's memory: for tests and development. Behaves as the Redis store does, expiry included.
 * Services that are given the same instance compete as two processes on one Redis would.
 */
export class MemoryLockStore implements LockStore {
  private readonly holds = new SweptMap<PlainHold>(({ expiresAt }) => expiresAt <= performance.now());
  private readonly queues = new SweptMap<MemoryQueue>((queue) => queue.isOver);
  private readonly turns = new MemoryTurns();
  private readonly listeners = new Map<string, Set<() => void>>();
  private readonly clients = new Map<string, Set<(message: QueueMessage) => void>>();
  /** One counter for all names is enough to make every token greater than the last, and leaves nothing behind. */
  private lastToken = 0;

  acquire(request: AcquireRequest): Promise<AcquireReply> {
    return new Promise((resolve) => {
      const { queue } = request;
      resolve(queue === undefined ? this.take(request) : this.enterQueue(request, queue));
    });
  }

  acquireAll({ turn, ...request }: AcquireAllRequest): Promise<AcquireAllReply> {
    return new Promise((resolve) => {
      const { names, owner } = request;
      const reserved = names.flatMap((name) => this.turns.reservation(name, turn?.asker) ?? []);
      for (const name of names) {
        const refusal =
          this.inTheWay(name, owner) ?? reserved.find((reservation) => reservation.name === name);
        if (refusal === undefined) continue;
        if (reserved.length === 0 && turn !== undefined) this.turns.reserve(names, turn);
        resolve({ ...refusal, granted: false, name });
        return;
      }
      this.turns.clear(names);
      resolve({ granted: true, fencingTokens: names.map((name) => this.enter({ ...request, name })) });
    });
  }

  placeOf(): string {
    return '';
  }

  renew(requests: readonly RenewRequest[]): readonly Promise<HoldState>[] {
    return requests.map(({ name, owner, leaseTime }) => {
      const queue = this.findQueue(name);
      if (queue !== undefined) return Promise.resolve(queue.renew(owner, leaseTime) ? 'held' : 'deleted');
      const hold = this.find(name);
      if (hold?.owner !== owner) return Promise.resolve(hold === undefined ? 'deleted' : 'taken');
      hold.expiresAt = Math.max(hold.expiresAt, performance.now() + leaseTime);
      return Promise.resolve('held');
    });
  }

  release({ name, owner, fencingToken, keepFor, queue }: ReleaseRequest): Promise<boolean> {
    if (queue !== undefined)
      return Promise.resolve(this.findQueue(name)?.leave(owner, keepFor ?? 0) ?? false);
    const hold = this.find(name);
    if (hold?.owner !== owner) return Promise.resolve(false);
    this.lastToken = Math.max(this.lastToken, fencingToken ?? 0);
    if (keepFor === undefined) return this.forceRelease(name);
    // Under another owner, whom a renewal that comes late does not know.
    hold.owner = `kept:${owner}`;
    hold.expiresAt = performance.now() + keepFor;
    this.announce(name);
    return Promise.resolve(true);
  }

  forceRelease(name: string): Promise<boolean> {
    const queue = this.findQueue(name);
    if (queue !== undefined) return Promise.resolve(queue.clear());
    const held = this.find(name) !== undefined;
    this.holds.delete(name);
    if (held) this.announce(name);
    return Promise.resolve(held);
  }

  subscribe(name: string, onWake: () => void): Promise<Subscription> {
    return Promise.resolve(listenIn(this.listeners, name, onWake));
  }

  listen(client: string, onMessage: (message: QueueMessage) => void): Promise<Subscription> {
    return Promise.resolve(listenIn(this.clients, client, onMessage));
  }

  inspect(name: string): Promise<StoredLock | null> {
    const queue = this.findQueue(name);
    const now = performance.now();
    const fencingToken = this.lastToken;
    if (queue !== undefined) {
      const holders = [...queue.holders].map(([owner, { mode, expiresAt, since }]) => ({
        owner,
        mode,
        since,
        remainingTime: expiresAt - now,
      }));
      const waiting = queue.waiting.map(({ owner, mode, arrival }) => ({
        owner,
        mode,
        since: Math.floor(arrival / 1000),
      }));
      return Promise.resolve({ kind: queue.kind, holders, queue: waiting, fencingToken, listeners: 0 });
    }
    const hold = this.find(name);
    if (hold === undefined) return Promise.resolve(null);
    const { owner, since, expiresAt } = hold;
    return Promise.resolve({
      kind: 'lock',
      holders: [{ owner, mode: 'exclusive', remainingTime: expiresAt - now, since }],
      queue: [],
      fencingToken,
      listeners: this.listeners.get(name)?.size ?? 0,
    });
  }

  health(): Promise<StoreHealth> {
    const memory = { node: 'memory', status: 'up', latency: 0, error: undefined } as const;
    return Promise.resolve({ status: 'up', nodes: [memory], warnings: [] });
  }

  onConnectionChange(): void {
    // Memory is always there.
  }

  close(): Promise<void> {
    // Nothing was opened. Other services may share this instance, so the locks stay.
    return Promise.resolve();
  }

  private take(request: AcquireRequest): AcquireReply {
    const refusal = this.inTheWay(request.name, request.owner);
    if (refusal !== undefined) return { ...refusal, granted: false };
    return { granted: true, fencingToken: this.enter(request) };
  }

  private inTheWay(name: string, owner: string): { retryAfter: number; holder: string } | undefined {
    const queue = this.findQueue(name);
    if (queue !== undefined) throw kindMismatch(name, PLAIN, queue);
    const hold = this.find(name);
    if (hold === undefined || hold.owner === owner) return undefined;
    return { retryAfter: hold.expiresAt - performance.now(), holder: hold.owner };
  }

  private enter({ name, owner, leaseTime, leastToken }: AcquireRequest): number {
    const since = this.find(name)?.since ?? Date.now();
    this.holds.set(name, { owner, expiresAt: performance.now() + leaseTime, since });
    this.lastToken = Math.max(this.lastToken, (leastToken ?? 0) - 1);
    return this.nextToken();
  }

  private enterQueue({ name, owner, leaseTime }: AcquireRequest, request: QueueRequest): AcquireReply {
    const { kind, capacity } = request;
    if (this.find(name) !== undefined) throw kindMismatch(name, request, PLAIN);
    let queue = this.findQueue(name);
    if (queue !== undefined && (queue.kind !== kind || queue.capacity !== capacity)) {
      throw kindMismatch(name, request, queue);
    }
    if (queue === undefined) {
      queue = new MemoryQueue(kind, capacity, {
        microseconds,
        nextToken: () => this.nextToken(),
        tell: (to, message) => this.tell(to, message),
      });
      this.queues.set(name, queue);
    }
    return queue.enter(owner, leaseTime, request);
  }

  private nextToken(): number {
    this.lastToken = Math.max(this.lastToken + 1, microseconds());
    return this.lastToken;
  }

  private find(name: string): PlainHold | undefined {
    const hold = this.holds.get(name);
    if (hold === undefined || hold.expiresAt > performance.now()) return hold;
    this.holds.delete(name);
    return undefined;
  }

  private findQueue(name: string): MemoryQueue | undefined {
    const queue = this.queues.get(name);
    if (queue?.isOver !== true) return queue;
    this.queues.delete(name);
    return undefined;
  }

  private tell(owner: string, message: QueueMessage): boolean {
    const client = owner.slice(0, owner.lastIndexOf(':'));
    const listeners = this.clients.get(client);
    for (const onMessage of listeners ?? []) {
      soon(() => {
        onMessage(message);
      });
    }
    return listeners !== undefined;
  }

  private announce(name: string): void {
    const listeners = this.listeners.get(name);
    const [first] = listeners ?? [];
    if (listeners === undefined || first === undefined) return;
    // Whoever was first now is last the next time: the services that share this store race as equals.
    listeners.delete(first);
    listeners.add(first);
    for (const onWake of listeners) soon(onWake);
  }
}

function listenIn<T>(all: Map<string, Set<T>>, key: string, listener: T): Subscription {
  const listeners = all.get(key) ?? new Set();
  all.set(key, listeners.add(listener));
  return {
    active: true,
    close: () => {
      listeners.delete(listener);
      if (listeners.size === 0 && all.get(key) === listeners) all.delete(key);
    },
  };
}
