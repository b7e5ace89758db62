import type { Captured } from '../core/call-site.js';
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
  /** With `reentrant: false`: stands for the call, whose holds no other call shares. */
  readonly apart?: object | undefined;
  /** The stack of the caller, where it was captured. */
  readonly site?: Captured | undefined;
  /** The caller gets the lease, and has to release it. */
  readonly byHand?: boolean | undefined;
}

/** What stands for a call that shares its holds with no other; undefined for a call that does. */
export const apartOf = (reentrant: boolean): object | undefined => (reentrant ? undefined : {});
