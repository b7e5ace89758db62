import type { DeadlockStep } from '../../api/deadlock.js';
import type { LockEvent } from '../../api/events.js';
import { clearTimer, wallTime } from '../../runtime/runtime.js';
import { inQuotes } from '../../runtime/text.js';
import type { LockStore, QueueTerms, StoredLock } from '../../store/lock-store.js';
import { idleTimerAt, now } from '../holding/deadline.js';
import type { Scope, ScopedHold } from '../scope/scope.js';
import type { DeadlockDetector } from './deadlock-detector.js';
import type { NestedWait } from './nested-wait.js';

/** ms for which a call without an end of its wait waits for a lock of its own scope, before that is a warning. */
const LONG_FOR_ITSELF = 10_000;

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
  readonly capturedCalls: { isNews(code: string, label: string, site: undefined): boolean };
  isOfThisProcess(owner: string): boolean;
  warn(warning: { readonly code: string; readonly message: string }): void;
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
  private readonly timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly client: NestedCallClient,
    private readonly inside: Scope,
    readonly label: string,
    private readonly begun: BegunWait,
  ) {
    client.deadlocks.watch(this);
    // Any other wait ends with an error that says so.
    if (begun.until === Infinity)
      this.timer = idleTimerAt(begun.begunAt + LONG_FOR_ITSELF, () => {
        this.lookAtItself();
      });
  }

  over(): void {
    this.client.deadlocks.over(this);
    clearTimer(this.timer);
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

  /**
   * The lock may be held by the call around this one. That is no deadlock if the two are work of two requests, of which a shared
   * queue has started one in the async context of the other: then the holder goes on by itself.
   */
  private lookAtItself(): void {
    const { client, name, label, inside } = this;
    const holder = client.callers.inTheWay(name);
    if (!inside.near().some(({ owner }) => owner === holder)) return;
    if (!client.capturedCalls.isNews(SELF_WAIT, label, undefined)) return;
    client.warn({
      code: SELF_WAIT,
      message:
        `A call labelled "${inQuotes(label)}" has waited for ${String(LONG_FOR_ITSELF / 1_000)} s, without an end of its wait, ` +
        `for the lock "${inQuotes(name)}", which the call around it holds and which is not re-entered (reentrant: false, or a ` +
        'semaphore). If that call waits for this one, both wait for ever: leave reentrant: false out of nested calls, or ' +
        'give them a waitTime',
    });
  }

  /** Without a fixed lease that ends before the wait: the callers that wait for it need not wait for this one. */
  private lasting(): readonly ScopedHold[] {
    return this.inside.near().filter(({ endsAt }) => endsAt >= this.begun.until);
  }
}

const SELF_WAIT = 'self-wait';
