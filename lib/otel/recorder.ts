import type { LockAcquireContext, LockHoldContext } from '../lock.tracing.js';

/** Makes spans or metrics of what is published. An end is told once, and only where the start was told. */
export interface Recorder {
  acquireStarted(acquisition: LockAcquireContext): void;
  acquireEnded(acquisition: LockAcquireContext): void;
  holdStarted(hold: LockHoldContext): void;
  holdEnded(hold: LockHoldContext): void;
  /** Nothing more is told. */
  stop?(): void;
}
