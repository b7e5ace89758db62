import { TransientMap } from '../../store/transient-map.js';
import type { GroupCaller } from './group-request.js';
import { LocalQueue } from './local-queue.js';
import type { LockClient } from '../lock-client.js';
import type { LockTerms } from './request.js';
import type { WaitRequest } from './waiting.js';

/** The waiters of one process for one lock, without callers that only ask. */
export interface LocalWaits {
  readonly waiting: number;
  /** The begin of the longest wait, on the monotonic clock. */
  readonly since: number;
}

/** The local queues of one client. */
export class LocalCallers {
  /** The queues of plain locks, by name. */
  private readonly queues = new TransientMap<string, LocalQueue>();
  /** By name, the queues of other kinds. Each has one caller. */
  private readonly single = new TransientMap<string, Set<LocalQueue>>();
  /** By name, the number of waiters in the queues of other kinds. Kept, because a count for each caller would be quadratic. */
  private readonly waiters = new TransientMap<string, number>();
  /** The number of callers in all queues. */
  private queued = 0;
  /** The callers of requests for several locks under way. */
  readonly groups = new Set<GroupCaller>();
  // One function for all queues, because a process may have 10,000 of them.
  private readonly onIdle = (queue: LocalQueue): void => {
    if (this.queues.get(queue.name) === queue) this.queues.delete(queue.name);
  };
  private readonly onGone = (queue: LocalQueue): void => {
    const queues = this.single.get(queue.name);
    if (queues?.delete(queue) === true && queues.size === 0) this.single.delete(queue.name);
  };

  constructor(private readonly client: LockClient) {}

  /** The number of waiters for all locks. */
  get waiting(): number {
    return this.groups.size + this.queued;
  }

  /** Called for each caller of a queue when it comes and when it goes. */
  count({ name, isByArrival }: LocalQueue, waits: boolean, change: 1 | -1): void {
    this.queued += change;
    if (!isByArrival || !waits) return;
    const waiting = (this.waiters.get(name) ?? 0) + change;
    if (waiting > 0) this.waiters.set(name, waiting);
    else this.waiters.delete(name);
  }

  /** The number of waiters for one lock, without callers that only ask. */
  waitingFor(name: string): number {
    let waiting = (this.queues.get(name)?.waiting ?? 0) + (this.waiters.get(name) ?? 0);
    for (const { names, since } of this.groups) if (since !== undefined && names.includes(name)) waiting++;
    return waiting;
  }

  /** The waits for all locks, by name. One pass, because a process may have thousands of callers for as many locks. */
  waits(): ReadonlyMap<string, LocalWaits> {
    const waits = new Map<string, LocalWaits>();
    const add = (name: string, waiting: number, begun: number): void => {
      const others = waits.get(name) ?? { waiting: 0, since: Infinity };
      waits.set(name, { waiting: others.waiting + waiting, since: Math.min(others.since, begun) });
    };
    for (const { name, waiting, waitingSince = Infinity } of this.all())
      if (waiting > 0) add(name, waiting, waitingSince);
    for (const { names, since } of this.groups)
      if (since !== undefined) for (const name of names) add(name, 1, since);
    return waits;
  }

  /** The last known owner of a lock that callers of this process wait for. */
  inTheWay(name: string): string | undefined {
    const holder = this.queues.get(name)?.holder;
    if (holder !== undefined) return holder;
    for (const caller of this.singleFor(name)) return caller.holder;
    return undefined;
  }

  /** The reason for the missing answer to the waiters for a plain lock. Undefined if the store answers. */
  failureOf(name: string): Error | undefined {
    return this.queues.get(name)?.failure;
  }

  /** Whether the local queue of a plain lock has waiters. */
  isAwaited(name: string): boolean {
    return (this.queues.get(name)?.length ?? 0) > 0;
  }

  /** Whether a caller asks for a read beside this write hold. Includes a read that is granted but not answered yet. */
  hasReaderOf(name: string, writeOwner: string): boolean {
    for (const caller of this.singleFor(name)) {
      if (caller.terms.ownWriteHold === writeOwner) return true;
    }
    return false;
  }

  queueOf(name: string): LocalQueue {
    let queue = this.queues.get(name);
    if (queue === undefined) {
      // Field by field, because a spread is slow and every acquisition of a free lock passes here.
      const { queue: terms, ownWriteHold } = this.client.plainTerms;
      queue = new LocalQueue({ name, queue: terms, ownWriteHold }, this.client, this.onIdle);
      this.queues.set(name, queue);
    }
    return queue;
  }

  /** The local queue of one caller of another kind. */
  addQueue(terms: LockTerms): LocalQueue {
    const queue = new LocalQueue(terms, this.client, this.onGone);
    const others = this.single.get(terms.name);
    if (others === undefined) this.single.set(terms.name, new Set([queue]));
    else others.add(queue);
    return queue;
  }

  /** The queue for a tenure that another process has passed on. */
  queueFor({ name, queue }: Pick<LockTerms, 'name' | 'queue'>): LocalQueue {
    if (queue === undefined) return this.queueOf(name);
    return new LocalQueue({ name, queue, ownWriteHold: undefined }, this.client, this.onGone);
  }

  sendAway(refused: (request: WaitRequest) => boolean): void {
    for (const queue of this.all()) queue.sendAway(refused);
    for (const caller of this.groups) caller.sendAway(refused);
  }

  private singleFor(name: string): Iterable<LocalQueue> {
    return this.single.get(name) ?? [];
  }

  /** Not copied: each lock that this process holds has a queue. */
  private *all(): Generator<LocalQueue> {
    yield* this.queues.values();
    for (const callers of this.single.values()) yield* callers;
  }
}
