import { kindMismatch, PLAIN } from '../../store/kind-mismatch.js';
import type { Asker } from '../../api/asker.js';
import type {
  AcquireAllReply,
  AcquireAllRequest,
  AcquireReply,
  AcquireRequest,
  HandOverReply,
  HoldState,
  LockStore,
  NextOwner,
  QueueTerms,
  ReleaseReply,
  ReleaseRequest,
  RenewRequest,
  StoredLock,
  StoreLabels,
  StorePeriods,
  StoreListing,
  StoreWaits,
  StoreQueues,
  Subscription,
  TransferReply,
  TransferRequest,
} from '../../store/lock-store.js';
import type { AskRequest, QueueMessage } from '../../store/queue-messages.js';
import type { StoreHealth } from '../../store/store-health.js';
import { MemoryLock } from './memory-lock.js';
import { clientOf } from './memory-queue.js';
import { memoryNotes } from './memory-notes.js';
import { SweptMap } from './swept-map.js';
import { now } from '../../runtime/clock.js';
import { timeOrigin } from '../../runtime/runtime.js';

/**
 * The distance of a token from the last one if the clock stands still, as under fake timers. A hand-off inside a
 * process gives out the next token without the store, at most 999 times in a row. The store learns of these tokens only with
 * the release, and a forced release or the end of a lease comes before that.
 */
const STRIDE = 1_000;

/**
 * Asynchronous like a message, so that no callback runs inside the releaser's own call. Fake timers delay `queueMicrotask`,
 * but not promises.
 */
const soon = (callback: () => void): void => void Promise.resolve().then(callback);

/** Microseconds since the epoch that never go back, like the time that the Redis scripts take from the server. */
const microseconds = () => Math.floor((timeOrigin() + now()) * 1000);

/** All that were made, by all copies of this package in the process: a service of one may be given a store of another. */
const STORES = Symbol.for('nestjs-distributed-lock.memory-stores');
const shared = globalThis as { [STORES]?: WeakSet<LockStore> | undefined };
const stores = (shared[STORES] ??= new WeakSet<LockStore>());

export const isMemoryStore = (store: LockStore): boolean => stores.has(store);

/**
 * Locks in this process's memory: for tests and development. The store behaves as the Redis store does, expiry included.
 * Services with the same instance compete as two processes on one Redis would.
 */
export class MemoryLockStore implements LockStore {
  private readonly locks = new SweptMap<MemoryLock>((lock) => lock.isOver);
  private readonly listeners = new Map<string, Set<() => void>>();
  /** When the work of a lock was last done. */
  private readonly done = new SweptMap<{ at: number; until: number }>(({ until }) => until <= now());
  private readonly clients = new Map<string, Set<(message: QueueMessage) => void>>();
  /** One counter for all names is enough to make every token greater than the last, and leaves nothing behind. */
  private lastToken = 0;
  private readonly ownQueues: StoreQueues = {
    subscribe: (client, onMessage) => Promise.resolve(listenIn(this.clients, client, onMessage)),
    handOver: (request, next) => this.passOn(request, next),
  };

  readonly labels: StoreLabels = memoryNotes();
  readonly waits: StoreWaits = memoryNotes();

  readonly listing: StoreListing = {
    names: ({ prefix }) => {
      const names = [...this.locks.keys()].filter((name) => name.startsWith(prefix));
      return Promise.resolve({ names: names.map((name) => ({ name, isQueue: false })), cursor: undefined });
    },
  };

  readonly periods: StorePeriods = {
    remember: async ({ name, owner, period }) => {
      const lock = this.find(name);
      const state = lock?.kind === 'lock' ? lock.renew(owner, 0) : this.notHeld(name);
      if (state === 'held') this.done.set(name, { at: now(), until: now() + period });
      return await Promise.resolve(state === 'released' ? 'deleted' : state);
    },
    recall: (name) => {
      const { at = 0, until = 0 } = this.done.get(name) ?? {};
      return Promise.resolve(until > now() ? Math.floor(now() - at) : undefined);
    },
  };

  constructor() {
    stores.add(this);
  }

  get queues(): StoreQueues {
    return this.ownQueues;
  }

  acquire(request: AcquireRequest): Promise<AcquireReply> {
    return new Promise((resolve) => {
      resolve(this.lockFor(request.name, request.queue).enter(request));
    });
  }

  acquireAll(request: AcquireAllRequest): Promise<AcquireAllReply> {
    return new Promise((resolve) => {
      const { names, owner, leaseTime, leastToken } = request;
      for (const name of names) {
        const held = this.lockFor(name).inTheWayOf(owner);
        if (held === undefined) continue;
        resolve({ ...held, granted: false, name });
        return;
      }
      const fencingTokens = names.map((name) => {
        const reply = this.lockFor(name).enter({ name, owner, leaseTime, leastToken });
        return reply.granted ? reply.fencingToken : NaN;
      });
      resolve({ granted: true, fencingTokens });
    });
  }

  locationOf(): string {
    return '';
  }

  renew(requests: readonly RenewRequest[]): readonly Promise<HoldState>[] {
    return requests.map(({ name, owner, leaseTime }) =>
      Promise.resolve(this.find(name)?.renew(owner, leaseTime) ?? 'deleted'),
    );
  }

  release(request: ReleaseRequest): Promise<ReleaseReply> {
    return Promise.resolve(this.leave(request)?.released ?? this.notHeld(request.name));
  }

  transfer(request: TransferRequest): Promise<TransferReply> {
    const { kind, mode, capacity } = { mode: 'exclusive', ...(request.queue ?? PLAIN) } as const;
    const lock = this.find(request.name);
    const isOther = lock !== undefined && (lock.kind !== kind || lock.capacity !== capacity);
    const fencingToken = isOther ? undefined : lock?.transfer(request);
    const date = Math.floor(microseconds() / 1_000);
    if (fencingToken !== undefined) return Promise.resolve({ granted: true, fencingToken, date });
    const isTaken = isOther || lock?.admits(mode) === false;
    return Promise.resolve({ granted: false, state: isTaken ? 'taken' : 'deleted', date });
  }

  forceRelease(name: string, mode?: QueueTerms['mode'], asker?: Asker): Promise<boolean> {
    return Promise.resolve(this.find(name)?.clear(mode, asker) ?? false);
  }

  requestRelease(request: AskRequest): Promise<boolean> {
    return Promise.resolve(this.tell(request.owner, { ...request, type: 'asked' }));
  }

  subscribeToReleases(name: string, onWake: () => void): Promise<Subscription> {
    return Promise.resolve(listenIn(this.listeners, name, onWake));
  }

  inspect(name: string): Promise<StoredLock | null> {
    const lock = this.find(name);
    if (lock === undefined) return Promise.resolve(null);
    const time = now();
    const holders = [...lock.holders].map(([owner, { mode, expiresAt, since }]) => ({
      owner,
      mode,
      since,
      remainingTime: expiresAt - time,
    }));
    const queue = [...lock.queue].map(({ owner, mode, arrival }) => ({
      owner,
      mode,
      since: Math.floor(arrival / 1000),
      dead: !this.clients.has(clientOf(owner)),
    }));
    const { kind, fencingToken } = lock;
    const listeners = this.listeners.get(name)?.size ?? 0;
    return Promise.resolve({ kind, holders, queue, fencingToken, listeners });
  }

  health(): Promise<StoreHealth> {
    const memory = { node: 'memory', status: 'up', latency: 0, error: undefined } as const;
    return Promise.resolve({ status: 'up', nodes: [memory], warnings: [] });
  }

  onConnectionChange(): void {
    // Memory is always available.
  }

  close(): Promise<void> {
    // The store has opened nothing. Other services may share this instance, so the locks stay.
    return Promise.resolve();
  }

  /** The lock of this name and kind. A name may be in use as one kind only. */
  private passOn(request: ReleaseRequest, next: NextOwner): Promise<HandOverReply> {
    const { name } = request;
    return new Promise((resolve) => {
      const reply = this.leave(request, next);
      if (reply !== undefined) {
        resolve(reply);
        return;
      }
      const released = this.notHeld(name);
      const entry = { arrival: undefined };
      const queue = { ...PLAIN, mode: 'exclusive', entry, ownWriteHold: undefined } as const;
      const { owner, leaseTime } = next;
      resolve({ released, next: this.lockFor(name).enter({ name, owner, leaseTime, queue }) });
    });
  }

  private lockFor(
    name: string,
    { kind, capacity }: Pick<QueueTerms, 'kind' | 'capacity'> = PLAIN,
  ): MemoryLock {
    const found = this.find(name);
    if (found?.kind === kind && found.capacity === capacity) return found;
    if (found?.settle() === true) throw kindMismatch(name, { kind, capacity }, found);
    const lock = new MemoryLock(kind, capacity, {
      microseconds,
      nextToken: (least) => this.nextToken(least),
      tell: (to, message) => this.tell(to, message),
      outsiders: () => this.listeners.get(name)?.size ?? 0,
      tellOutsiders: () => {
        this.announce(name);
      },
    });
    this.locks.set(name, lock);
    return lock;
  }

  /** Undefined if the name is not in use as that kind. */
  private leave(request: ReleaseRequest, next?: NextOwner): HandOverReply | undefined {
    const { name, queue = PLAIN } = request;
    const lock = this.find(name);
    if (lock?.kind !== queue.kind) return undefined;
    const reply = lock.leave(request, next);
    this.lastToken = Math.max(this.lastToken, lock.fencingToken ?? 0);
    return reply;
  }

  private notHeld(name: string): ReleaseReply {
    return this.find(name) === undefined ? 'deleted' : 'taken';
  }

  private nextToken(leastToken = 0): number {
    const token = Math.max(microseconds(), leastToken);
    this.lastToken = token > this.lastToken ? token : this.lastToken + STRIDE;
    return this.lastToken;
  }

  private find(name: string): MemoryLock | undefined {
    const lock = this.locks.get(name);
    if (lock?.isOver !== true) return lock;
    this.locks.delete(name);
    return undefined;
  }

  private tell(owner: string, message: QueueMessage): boolean {
    const listeners = this.clients.get(clientOf(owner));
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
    // The listener that comes first now comes last the next time, so that the services that share this store have equal
    // chances.
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
