import type { Tenure } from '../client/holding/tenure.js';
import type { Busy } from '../client/waiting/waiting.js';
import type { AcquireCall } from './call.js';
import { StoreLock } from './store-lock.js';

/** The reentrant lock of one name, wire-compatible with Redisson's RLock. Waiting processes get it in turn. */
export class PlainLock extends StoreLock {
  readonly kind = 'lock';
  readonly travelsAs = undefined;

  protected acquireTenure(call: AcquireCall): Promise<Tenure | Busy> {
    return this.client.acquire(this.name, call);
  }
}
