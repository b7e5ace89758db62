import { Subject } from 'rxjs';
import type { LockEvent } from '../lock.events.js';
import { runOutsideScopes } from './scope.js';

/** Events come to light in the scope of whatever lock happens to be used. Their listeners run in none. */
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
