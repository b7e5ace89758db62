import { Subject } from 'rxjs';
import type { LockEvent } from '../api/events.js';
import { runOutsideScopes } from './scope/scope.js';

/** What the log has no line for: how the calls of a lock end, day in, day out. */
const USUAL = {
  acquired: true,
  'handed-over': true,
  released: true,
  'timed-out': true,
  // A warning tells of the first one.
  outlived: true,
  abandoned: true,
} as const satisfies Partial<Record<LockEvent['type'], true>>;

/** What an operator may want to read of. */
export type UnusualEvent = Exclude<LockEvent, { type: keyof typeof USUAL }>;

const isUnusual = (event: LockEvent): event is UnusualEvent => !Object.hasOwn(USUAL, event.type);

/** An event may occur in the scope of any lock that is used at that moment. Its listeners run outside of all scopes. */
export class EventStream extends Subject<LockEvent> {
  /**
   * For the log, which is always subscribed and writes nothing of the usual events: these cost a call nothing where no code
   * observes all events. The listeners of `unusual` run before the listeners of all events.
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
