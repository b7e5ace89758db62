import type { NestedCall } from '../core/deadlock/nested-call.js';
import type { ResolvedAcquireOptions } from '../lock.options.js';
import type { AcquisitionObserver } from '../lock.tracing.js';

/** The options of a call, and what observes it on its way. */
export interface AcquireCall extends ResolvedAcquireOptions {
  /** Gets what is published of the call. */
  readonly trace?: AcquisitionObserver | undefined;
  /** ms for which a call that does not wait for the lock waits for the answer of the store; 0 as long as the store takes. */
  readonly answerTime?: number | undefined;
  /** For a call under other locks, which may wait for itself in a circle. */
  readonly nested?: NestedCall | undefined;
}
