import { TransientMap } from '../../store/transient-map.js';
import { GroupRequest } from './group-request.js';
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
  /** By name, the queues of other kinds, and the requests for several locks. Each has one caller. */
  private readonly single = new TransientMap<string, Set<LocalQueue | GroupRequest>>();
  // One function for all queues, because a process may have 10,000 of them.
  private readonly onIdle = (queue: LocalQueue): void => {
    if (this.queues.get(queue.name) === queue) this.queues.delete(queue.name);
  };
  private readonly onGone = (caller: LocalQueue | GroupRequest): void => {
    for (const name of caller.names) {
      const callers = this.single.get(name);
      callers?.delete(caller);
      if (callers?.size === 0) this.single.delete(name);
    }
  };

  constructor(private readonly client: LockClient) {}

  /** The number of waiters for all locks. */
  get waiting(): number {
    let waiting = 0;
    for (const { length } of this.all()) waiting += length;
    return waiting;
  }

  /** The number of waiters for one lock, without callers that only ask. */
  waitingFor(name: string): number {
    let waiting = this.queues.get(name)?.waiting ?? 0;
    for (const caller of this.singleFor(name)) waiting += caller.waiting;
    return waiting;
  }

  /** The waits for all locks, by name. One pass, because a process may have thousands of callers for as many locks. */
  waits(): ReadonlyMap<string, LocalWaits> {
    const waits = new Map<string, LocalWaits>();
    for (const { names, waiting, waitingSince = Infinity } of this.all()) {
      if (waiting === 0) continue;
      for (const name of names) {
        const others = waits.get(name) ?? { waiting: 0, since: Infinity };
        const since = Math.min(others.since, waitingSince);
        waits.set(name, { waiting: others.waiting + waiting, since });
      }
    }
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
      if (caller instanceof LocalQueue && caller.terms.ownWriteHold === writeOwner) return true;
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
    return this.add(new LocalQueue(terms, this.client, this.onGone));
  }

  /** One caller's request for several plain locks. */
  addGroup(names: readonly string[]): GroupRequest {
    return this.add(new GroupRequest(names, this.client, this.onGone));
  }

  /** The queue for a tenure that another process has passed on. */
  queueFor({ name, queue }: Pick<LockTerms, 'name' | 'queue'>): LocalQueue {
    if (queue === undefined) return this.queueOf(name);
    return new LocalQueue({ name, queue, ownWriteHold: undefined }, this.client, this.onGone);
  }

  sendAway(refused: (request: WaitRequest) => boolean): void {
    for (const caller of this.all()) caller.sendAway(refused);
  }

  private add<C extends LocalQueue | GroupRequest>(caller: C): C {
    for (const name of caller.names) {
      const callers = this.single.get(name);
      if (callers === undefined) this.single.set(name, new Set([caller]));
      else callers.add(caller);
    }
    return caller;
  }

  private singleFor(name: string): Iterable<LocalQueue | GroupRequest> {
    return this.single.get(name) ?? [];
  }

  private all(): Iterable<LocalQueue | GroupRequest> {
    return new Set([
      ...this.queues.values(),
      ...[...this.single.values()].flatMap((callers) => [...callers]),
    ]);
  }
}
