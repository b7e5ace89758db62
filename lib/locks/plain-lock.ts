import type { Tenure } from '../core/tenure.js';
import type { Busy, WaitRequest } from '../core/waiting.js';
import { StoreLock } from './store-lock.js';

/** The reentrant lock of one name, wire-compatible with Redisson's RLock. Processes get it in turn. */
export class PlainLock extends StoreLock {
  readonly kind = 'lock';
  readonly travelsAs = undefined;

  protected acquireTenure(request: WaitRequest): Promise<Tenure | Busy> {
    return this.client.acquire(this.name, request);
  }
}
