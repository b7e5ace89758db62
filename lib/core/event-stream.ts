import { Subject } from 'rxjs';
import type { LockEvent } from '../lock.events.js';
import { runOutsideScopes } from './scope.js';

/** An event may occur in the scope of any lock that is used at that moment. Its listeners run outside of all scopes. */
export class EventStream extends Subject<LockEvent> {
  override next(event: LockEvent): void {
    if (!this.observed) return;
    runOutsideScopes(() => {
      super.next(event);
    });
  }

  override complete(): void {
    runOutsideScopes(() => {
      super.complete();
    });
  }
}
