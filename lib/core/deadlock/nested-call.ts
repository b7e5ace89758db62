import type { DeadlockStep } from '../../lock.deadlock.js';
import type { LockEvent } from '../../lock.events.js';
import { wallTime } from '../../lock.runtime.js';
import type { LockStore, QueueTerms, StoredLock } from '../../port/lock-store.js';
import { now } from '../deadline.js';
import type { Scope, ScopedHold } from '../scope.js';
import type { DeadlockDetector } from './deadlock-detector.js';
import type { NestedWait } from './nested-wait.js';

/** What a nested call needs of its client. */
export interface NestedCallClient {
  readonly id: string;
  readonly store: Pick<LockStore, 'inspect'>;
  readonly options: { readonly label: string; readonly deadlock: 'break' | 'report' | 'off' };
  readonly events: { next(event: LockEvent): void };
  readonly deadlocks: DeadlockDetector;
  readonly callers: {
    /** The owner that has a lock that callers of this process wait for, as far as it is known. */
    inTheWay(name: string): string | undefined;
  };
  isOfThisProcess(owner: string): boolean;
}

/** A wait of a nested call, as its waiter knows it. */
interface BegunWait {
  readonly name: string;
  readonly queue: QueueTerms | undefined;
  /** On the monotonic clock. */
  readonly begunAt: number;
  readonly until: number;
  /** Ends the wait, which is a member of a deadlock. */
  readonly end: (cycle: readonly DeadlockStep[]) => void;
}

/** A call for a lock under other locks. Each lock that it waits for is a wait of its own. */
export class NestedCall {
  constructor(
    private readonly client: NestedCallClient,
    private readonly inside: Scope,
    private readonly label: string,
  ) {}

  /** The call waits for a lock. */
  waits(begun: BegunWait): WaitOfCall {
    return new WaitOfCall(this.client, this.inside, this.label, begun);
  }
}

let sequence = 0;

/** Most waits are over at once, so what is told of a wait is made when it is asked for. */
export class WaitOfCall implements NestedWait {
  private readonly number = ++sequence;
  private begunOn: number | undefined;
  private told = '';

  constructor(
    private readonly client: NestedCallClient,
    private readonly inside: Scope,
    readonly label: string,
    private readonly begun: BegunWait,
  ) {
    client.deadlocks.watch(this);
  }

  over(): void {
    this.client.deadlocks.over(this);
  }

  get id(): string {
    return `${this.client.id}/${String(this.number)}`;
  }

  get name(): string {
    return this.begun.name;
  }

  get begunAt(): number {
    return this.begun.begunAt;
  }

  get since(): number {
    return (this.begunOn ??= wallTime() - Math.round(now() - this.begunAt));
  }

  get mode(): 'exclusive' | 'shared' {
    const { queue } = this.begun;
    return queue?.kind === 'read-write' ? queue.mode : 'exclusive';
  }

  get permits(): number | undefined {
    const { queue } = this.begun;
    return queue?.kind === 'semaphore' ? queue.capacity : undefined;
  }

  get process(): string {
    return this.client.options.label;
  }

  get breaks(): boolean {
    return this.client.options.deadlock === 'break';
  }

  get clientId(): string {
    return this.client.id;
  }

  get holds(): readonly string[] {
    return this.lasting().map(({ owner }) => owner);
  }

  get heldNames(): readonly string[] {
    return this.lasting().map(({ name }) => name);
  }

  get mayBeLocal(): boolean {
    const { client, begun } = this;
    // Others may hold it as well, and which ones is known to the store only.
    if (begun.queue?.kind === 'semaphore' || begun.queue?.kind === 'read-write') return true;
    const holder = client.callers.inTheWay(begun.name);
    return holder === undefined || client.isOfThisProcess(holder);
  }

  inspect(): Promise<StoredLock | null> {
    return this.client.store.inspect(this.name);
  }

  found(cycle: readonly DeadlockStep[], isBroken: boolean): void {
    const { name, label } = this;
    const told = JSON.stringify(cycle);
    if (this.told !== told || isBroken) {
      this.told = told;
      this.client.events.next({ type: 'deadlock', name, label, cycle, broken: isBroken });
    }
    if (isBroken) this.begun.end(cycle);
  }

  /** Without a fixed lease that ends before the wait: the callers that wait for it need not wait for this one. */
  private lasting(): readonly ScopedHold[] {
    return this.inside.near().filter(({ endsAt }) => endsAt >= this.begun.until);
  }
}
