import { Subject } from 'rxjs';
import type { LockEvent } from '../api/events.js';
import { runOutsideScopes } from './scope/scope.js';

/** Events without a log line: the usual ends of calls. */
const USUAL = {
  acquired: true,
  'handed-over': true,
  released: true,
  'timed-out': true,
  // The log has a warning for the first one.
  outlived: true,
  abandoned: true,
} as const satisfies Partial<Record<LockEvent['type'], true>>;

/** Events that an operator may want to see in the log. */
export type UnusualEvent = Exclude<LockEvent, { type: keyof typeof USUAL }>;

export const isUnusual = (event: LockEvent): event is UnusualEvent => !Object.hasOwn(USUAL, event.type);

/** Listeners run outside all scopes, because an event may occur in the scope of any lock. */
export class EventStream extends Subject<LockEvent> {
  /**
   * For the log, which is always subscribed but ignores usual events: without other listeners, a usual event costs
   * nothing. Listeners of `unusual` run before the listeners of all events.
   */
  readonly unusual = new Subject<UnusualEvent>();

  override next(event: LockEvent): void {
    if (isUnusual(event)) {
      runOutsideScopes(() => {
        this.unusual.next(event);
        super.next(event);
      });
    } else if (this.observed) {
      runOutsideScopes(() => {
        super.next(event);
      });
    }
  }

  override complete(): void {
    runOutsideScopes(() => {
      this.unusual.complete();
      super.complete();
    });
  }
}
