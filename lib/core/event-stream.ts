import { Subject } from 'rxjs';
import type { LockEvent } from '../lock.events.js';
import { runOutsideScopes } from './scope.js';

/** How the calls of a lock end, day in, day out. */
type UsualEvent = Extract<LockEvent, { type: 'acquired' | 'handed-over' | 'released' | 'timed-out' }>;

/** What an operator may want to read of. */
export type UnusualEvent = Exclude<LockEvent, UsualEvent>;

const USUAL: Readonly<Record<UsualEvent['type'], true>> = {
  acquired: true,
  'handed-over': true,
  released: true,
  'timed-out': true,
};

const isUnusual = (event: LockEvent): event is UnusualEvent => !Object.hasOwn(USUAL, event.type);

/** An event may occur in the scope of any lock that is used at that moment. Its listeners run outside of all scopes. */
export class EventStream extends Subject<LockEvent> {
  /**
   * For the log, which listens all the time. Were it to listen to all events, each call of a busy process would pay for
   * leaving its scope, to tell the log of what it does not write. Its listeners are told before those of all events.
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
