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
  QueueTerms,
  ReleaseReply,
  ReleaseRequest,
  RenewRequest,
  StoredLock,
  StoreHealth,
  Subscription,
} from '../lock-store.js';
import { MemoryQueue } from './memory-queue.js';
import { MemoryTurns } from './memory-turns.js';
import { SweptMap } from './swept-map.js';
import { now } from '../../lock.clock.js';

interface PlainHold {
  owner: string;
  expiresAt: number;
  since: number;
  /** The last one given out under this hold. */
  fencingToken: number;
}

/**
 * How far a token lies from the last where the clock has not gone on, as under fake timers. A hand-off inside a process
 * gives out the next token without the store, at most 999 times in a row, and the store learns of it with the release
 * only: a forced release or the end of a lease comes before that.
 */
const STRIDE = 1_000;

/**
 * Asynchronous like a message, so that nobody is woken inside the releaser's own call. Fake timers hold
 * `queueMicrotask` up, and promises not.
 */
const soon = (callback: () => void): void => void Promise.resolve().then(callback);

/** Microseconds since the epoch that never go back, as the Redis scripts take them from the server. */
const microseconds = () => Math.floor((performance.timeOrigin + now()) * 1000);

/**
 * Locks in this process's memory: for tests and development. Behaves as the Redis store does, expiry included.
 * Services that are given the same instance compete as two processes on one Redis would.
 */
export class MemoryLockStore implements LockStore {
  private readonly holds = new SweptMap<PlainHold>(({ expiresAt }) => expiresAt <= now());
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
      let refusal: Extract<AcquireAllReply, { granted: false }> | undefined;
      const ofElders = this.turns.ofElders(names, turn);
      for (const [index, name] of names.entries()) {
        const held = this.inTheWay(name, owner);
        const ofElder = ofElders[index] === true;
        if (held !== undefined) {
          if (turn !== undefined && !ofElder) this.turns.reserve(name, names, turn, held.retryAfter);
          if (refusal?.holder === undefined) refusal = { ...held, granted: false, name };
        } else if (ofElder) {
          const retryAfter = this.turns.freeIn(name);
          refusal ??= { granted: false, name, retryAfter, holder: undefined };
        }
      }
      if (refusal === undefined) {
        if (turn !== undefined) this.turns.leave(names, turn.asker);
        const fencingTokens = names.map((name) => this.enter({ ...request, name }));
        resolve({ granted: true, fencingTokens });
      } else {
        resolve(refusal);
      }
    });
  }

  leaveTurns(names: readonly string[], asker: string): Promise<void> {
    this.turns.leave(names, asker);
    return Promise.resolve();
  }

  placeOf(): string {
    return '';
  }

  renew(requests: readonly RenewRequest[]): readonly Promise<HoldState>[] {
    return requests.map(({ name, owner, leaseTime }) => {
      const queue = this.findQueue(name);
      if (queue !== undefined) return Promise.resolve(queue.renew(owner, leaseTime));
      const hold = this.find(name);
      if (hold?.owner !== owner) return Promise.resolve(hold === undefined ? 'deleted' : 'taken');
      hold.expiresAt = Math.max(hold.expiresAt, now() + leaseTime);
      return Promise.resolve('held');
    });
  }

  release({ name, owner, fencingToken, keepFor, queue }: ReleaseRequest): Promise<ReleaseReply> {
    const [hold, found] = [this.find(name), this.findQueue(name)];
    if (queue !== undefined && found !== undefined)
      return Promise.resolve(found.leave(owner, queue, keepFor ?? 0));
    if (hold?.owner !== owner || queue !== undefined) {
      return Promise.resolve(hold === undefined && found === undefined ? 'deleted' : 'taken');
    }
    hold.fencingToken = Math.max(hold.fencingToken, fencingToken ?? 0);
    this.lastToken = Math.max(this.lastToken, hold.fencingToken);
    if (keepFor === undefined) {
      this.holds.delete(name);
    } else {
      // Under another owner, whom a renewal that comes late does not know.
      hold.owner = `kept:${owner}`;
      hold.expiresAt = now() + keepFor;
    }
    this.announce(name);
    return Promise.resolve('released');
  }

  forceRelease(name: string, mode?: QueueTerms['mode']): Promise<boolean> {
    const queue = this.findQueue(name);
    if (queue !== undefined) return Promise.resolve(queue.clear(mode));
    const hold = this.find(name);
    if (mode !== undefined || hold === undefined) return Promise.resolve(false);
    this.holds.delete(name);
    this.tell(hold.owner, { type: 'lost', owner: hold.owner });
    this.announce(name);
    return Promise.resolve(true);
  }

  subscribe(name: string, onWake: () => void): Promise<Subscription> {
    return Promise.resolve(listenIn(this.listeners, name, onWake));
  }

  listen(client: string, onMessage: (message: QueueMessage) => void): Promise<Subscription> {
    return Promise.resolve(listenIn(this.clients, client, onMessage));
  }

  inspect(name: string): Promise<StoredLock | null> {
    const queue = this.findQueue(name);
    const time = now();
    if (queue !== undefined) {
      const holders = [...queue.holders].map(([owner, { mode, expiresAt, since }]) => ({
        owner,
        mode,
        since,
        remainingTime: expiresAt - time,
      }));
      const waiting = queue.waiting.map(({ owner, mode, arrival }) => ({
        owner,
        mode,
        since: Math.floor(arrival / 1000),
      }));
      const { kind, fencingToken } = queue;
      return Promise.resolve({ kind, holders, queue: waiting, fencingToken, listeners: 0 });
    }
    const hold = this.find(name);
    if (hold === undefined) return Promise.resolve(null);
    const { owner, since, expiresAt, fencingToken } = hold;
    return Promise.resolve({
      kind: 'lock',
      holders: [{ owner, mode: 'exclusive', remainingTime: expiresAt - time, since }],
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
    if (queue?.settle() === true) throw kindMismatch(name, PLAIN, queue);
    const hold = this.find(name);
    if (hold === undefined || hold.owner === owner) return undefined;
    return { retryAfter: hold.expiresAt - now(), holder: hold.owner };
  }

  private enter({ name, owner, leaseTime, leastToken }: AcquireRequest): number {
    const since = this.find(name)?.since ?? Date.now();
    const fencingToken = this.nextToken(leastToken);
    this.holds.set(name, { owner, expiresAt: now() + leaseTime, since, fencingToken });
    return fencingToken;
  }

  private enterQueue({ name, owner, leaseTime }: AcquireRequest, request: QueueRequest): AcquireReply {
    const { kind, capacity } = request;
    if (this.find(name) !== undefined) throw kindMismatch(name, request, PLAIN);
    let queue = this.findQueue(name);
    if (queue !== undefined && (queue.kind !== kind || queue.capacity !== capacity)) {
      if (queue.settle()) throw kindMismatch(name, request, queue);
      queue = undefined;
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

  private nextToken(leastToken = 0): number {
    const token = Math.max(microseconds(), leastToken);
    this.lastToken = token > this.lastToken ? token : this.lastToken + STRIDE;
    return this.lastToken;
  }

  private find(name: string): PlainHold | undefined {
    const hold = this.holds.get(name);
    if (hold === undefined || hold.expiresAt > now()) return hold;
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
