import type { LockClient } from '../client/lock-client.js';
import { cureOf } from '../api/duration.js';
import { LockConfigError } from '../api/errors.js';
import type { Hold } from './hold.js';
import { QueueLock } from './queue-lock.js';

/** Up to `permits` leases at once. Each permit is its own lease: a scope that acquires twice holds two. */
export class Semaphore extends QueueLock {
  constructor(name: string, client: LockClient, permits: number) {
    if (!Number.isSafeInteger(permits) || permits < 1) {
      const rule = `must be a whole number from 1 on${cureOf(permits)}`;
      throw new LockConfigError('permits', rule, { value: permits, key: name });
    }
    super(name, client, { kind: 'semaphore', mode: 'shared', capacity: permits });
  }

  get permits(): number {
    return this.queue.capacity;
  }

  override findHold(): Hold | undefined {
    return undefined;
  }
}
