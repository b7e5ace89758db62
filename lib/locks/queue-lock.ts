import type { LockClient, StoredHold } from '../client/lock-client.js';
import type { Tenure } from '../client/holding/tenure.js';
import type { Busy } from '../client/waiting/waiting.js';
import { LockConfigError } from '../api/errors.js';
import type { LockTerms } from '../client/waiting/request.js';
import type { AcquireCall } from './call.js';
import { StoreLock } from './store-lock.js';

/** The rule for a store of the application that gives no reason of its own. */
const NO_QUEUES = 'has no fair lock, read-write lock or semaphore: its store has no queues';

export const FAIR = { kind: 'fair', mode: 'exclusive', capacity: 1 } as const;

/** A lock of a kind with a queue: first come, first served, across all processes. */
export class QueueLock extends StoreLock {
  constructor(
    name: string,
    client: LockClient,
    protected readonly queue: NonNullable<LockTerms['queue']>,
  ) {
    super(name, client);
    const { queues, noQueues } = client.store;
    if (queues !== undefined) return;
    throw new LockConfigError(client.options.location, noQueues ?? NO_QUEUES, { key: name });
  }

  get travelsAs(): NonNullable<LockTerms['queue']> {
    return this.queue;
  }

  get kind(): 'fair' | 'read' | 'write' | 'semaphore' {
    const { kind, mode } = this.queue;
    if (kind === 'fair' || kind === 'semaphore') return kind;
    return mode === 'shared' ? 'read' : 'write';
  }

  protected override makeIdentity(): string {
    return `${super.makeIdentity()} ${this.queue.kind} ${this.queue.mode}`;
  }

  protected acquireTenure(call: AcquireCall): Promise<Tenure | Busy> {
    const { name, queue } = this;
    const ownWriteHold = this.ownWriteHold?.(call);
    return this.client.acquireQueued({ name, queue, ownWriteHold }, call);
  }

  protected override async holds(): Promise<StoredHold[]> {
    return (await super.holds()).filter((hold) => hold.mode === this.queue.mode);
  }

  /** The owner of an exclusive hold of the caller's scope that may coexist with this lock. */
  protected ownWriteHold?(call: AcquireCall): string | undefined;
}
