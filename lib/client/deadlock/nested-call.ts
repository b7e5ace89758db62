import type { DeadlockStep } from '../../api/deadlock.js';
import { clearTimer, wallTime } from '../../runtime/runtime.js';
import { inQuotes } from '../../runtime/text.js';
import type { QueueTerms, StoredLock } from '../../store/lock-store.js';
import { idleTimerAt, now } from '../holding/deadline.js';
import type { Scope, ScopedHold } from '../scope/scope.js';
import type { LockClient } from '../lock-client.js';
import type { NestedWait } from './nested-wait.js';

/** Wait, ms, after which a call that has no wait limit and waits for a lock of its own scope causes a warning. */
const LONG_FOR_ITSELF = 10_000;

/** A wait, described by its waiter. */
interface BegunWait {
  readonly name: string;
  readonly queue: QueueTerms | undefined;
  /** On the monotonic clock. */
  readonly begunAt: number;
  readonly until: number;
  /** Ends the wait with a deadlock error. */
  readonly end: (cycle: readonly DeadlockStep[]) => void;
}

/** Begins a wait of a call for a lock under other locks: one for each lock that the call waits for. */
export type NestedCall = (begun: BegunWait) => Pick<WaitOfCall, 'over'>;

let sequence = 0;

/** The properties are getters because most waits end before the detector reads one. */
export class WaitOfCall implements NestedWait {
  private readonly number = ++sequence;
  private begunOn: number | undefined;
  private told = '';
  private readonly timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly client: LockClient,
    private readonly inside: Scope,
    readonly label: string,
    private readonly begun: BegunWait,
  ) {
    client.deadlocks.watch(this);
    // A wait with a limit ends with an error anyway.
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
    // A semaphore or a read side may have further holders, which only the store knows.
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
   * The call around this one may hold the lock. This is no deadlock if a shared queue started the work of one request
   * in the async context of another request: then the holder finishes by itself. So it causes a warning only.
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
        `for the lock "${inQuotes(name)}", which the call around it holds and which is not re-entered (reentrant: false, once ` +
        'inside of once, or a semaphore). If that call waits for this one, both wait for ever: leave reentrant: false out of ' +
        'nested calls, or give them a waitTime',
    });
  }

  /** Without fixed leases that end before the wait does: they block no other caller beyond it. */
  private lasting(): readonly ScopedHold[] {
    return this.inside.near().filter(({ endsAt }) => endsAt >= this.begun.until);
  }
}

const SELF_WAIT = 'self-wait';
