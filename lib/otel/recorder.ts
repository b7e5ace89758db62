import type { LockAcquireContext, LockHoldContext } from '../api/tracing-channels.js';

/** Turns published contexts into spans or metrics. An end comes once, and only after its start. */
export interface Recorder {
  acquireStarted(acquisition: LockAcquireContext): void;
  acquireEnded(acquisition: LockAcquireContext): void;
  holdStarted(hold: LockHoldContext): void;
  holdEnded(hold: LockHoldContext): void;
  /** Nothing more is told. */
  stop?(): void;
}
