import type { LockStore } from '../../store/lock-store.js';
import { TransientMap } from '../../store/transient-map.js';
import { GroupRequest } from './group-request.js';
import { LocalQueue } from './local-queue.js';
import type { QueueClient } from './queue-client.js';
import type { LockTerms } from './acquisition.js';
import type { WaitRequest } from './waiting.js';

/** The callers of one client that want a lock, in their local queues. */
export class LocalCallers {
  /** Of the plain locks, by name. */
  private readonly queues = new TransientMap<string, LocalQueue>();
  /** Of the other kinds, and of several locks at once. Each has one caller. */
  private readonly single = new TransientMap<LocalQueue | GroupRequest, true>();
  // One function for all queues, not one for each of ten thousand locks.
  private readonly onIdle = (queue: LocalQueue): void => {
    if (this.queues.get(queue.name) === queue) this.queues.delete(queue.name);
  };
  private readonly onGone = (queue: LocalQueue | GroupRequest): void => {
    this.single.delete(queue);
  };

  constructor(
    private readonly store: LockStore,
    private readonly client: QueueClient,
    private readonly plainTerms: Pick<LockTerms, 'queue' | 'ownWriteHold'>,
  ) {}

  /** How many wait, for any lock. */
  get waiting(): number {
    let waiting = 0;
    for (const { length } of this.all()) waiting += length;
    return waiting;
  }

  /** How many wait for one lock. Callers that only ask are not among them. */
  waitingFor(name: string): number {
    let waiting = this.queues.get(name)?.waiting ?? 0;
    for (const caller of this.single.keys()) if (caller.names.includes(name)) waiting += caller.waiting;
    return waiting;
  }

  /** Since when the first waiter for one lock waits, on the monotonic clock. */
  waitingSince(name: string): number | undefined {
    let first = this.queues.get(name)?.waitingSince ?? Infinity;
    for (const caller of this.single.keys())
      if (caller.names.includes(name)) first = Math.min(first, caller.waitingSince ?? Infinity);
    return first === Infinity ? undefined : first;
  }

  /** The owner that has a lock that they wait for, as far as it is known. */
  inTheWay(name: string): string | undefined {
    const holder = this.queues.get(name)?.holder;
    if (holder !== undefined) return holder;
    for (const caller of this.single.keys()) if (caller.names.includes(name)) return caller.holder;
    return undefined;
  }

  /** Why the store has not answered those that wait for a plain lock. Undefined while it answers. */
  failureOf(name: string): Error | undefined {
    return this.queues.get(name)?.failure;
  }

  /** Whether any wait in the local queue of a plain lock. */
  isAwaited(name: string): boolean {
    return (this.queues.get(name)?.length ?? 0) > 0;
  }

  /** Whether one asks for a read beside this write hold: also a read that the store has granted and not answered yet. */
  hasReaderOf(writeOwner: string): boolean {
    for (const caller of this.single.keys()) {
      if (caller instanceof LocalQueue && caller.terms.ownWriteHold === writeOwner) return true;
    }
    return false;
  }

  /** The local queue of a plain lock. */
  queueOf(name: string): LocalQueue {
    let queue = this.queues.get(name);
    if (queue === undefined) {
      // Field by field and not spread, which is slow: every acquisition of a free lock comes this way.
      const { queue: terms, ownWriteHold } = this.plainTerms;
      queue = new LocalQueue({ name, queue: terms, ownWriteHold }, this.client, this.onIdle);
      this.queues.set(name, queue);
    }
    return queue;
  }

  /** The local queue of one caller of another kind. */
  addQueue(terms: LockTerms): LocalQueue {
    const queue = new LocalQueue(terms, this.client, this.onGone);
    this.single.set(queue, true);
    return queue;
  }

  /** One caller of several plain locks at once. */
  addGroup(names: readonly string[]): GroupRequest {
    const { queue } = this.plainTerms;
    const group = new GroupRequest(names, this.store, { queue }, this.client, this.onGone);
    this.single.set(group, true);
    return group;
  }

  /** What keeps a tenure that another process has handed over. */
  keeperOf({ name, queue }: Pick<LockTerms, 'name' | 'queue'>): LocalQueue {
    if (queue === undefined) return this.queueOf(name);
    return new LocalQueue({ name, queue, ownWriteHold: undefined }, this.client, this.onGone);
  }

  sendAway(refused: (request: WaitRequest) => boolean): void {
    for (const queue of [...this.all()]) queue.sendAway(refused);
  }

  private *all(): Generator<LocalQueue | GroupRequest> {
    yield* this.queues.values();
    yield* this.single.keys();
  }
}
