import { Observable, Subject } from 'rxjs';
import { runOutsideScopes } from '../core/scope.js';

/** Tells the subscribers of an election whether this process leads: the present value first, then each change, in order. */
export class LeaderChanges {
  readonly leader$: Observable<boolean>;
  private readonly changes = new Subject<boolean>();
  private readonly untold: boolean[] = [];

  constructor(isLeader: () => boolean) {
    this.leader$ = new Observable((subscriber) => {
      let last: boolean | undefined;
      const tell = (leads: boolean): void => {
        if (leads === last) return;
        last = leads;
        subscriber.next(leads);
      };
      const tellPresent = (): void => {
        runOutsideScopes(() => {
          tell(isLeader());
        });
      };
      tellPresent();
      const complete = (): void => {
        subscriber.complete();
      };
      const subscription = this.changes.subscribe({ next: tell, complete });
      // A subscriber that resigns when it hears that it leads has ended the term before the line above.
      tellPresent();
      return subscription;
    });
  }

  get isObserved(): boolean {
    return this.changes.observed;
  }

  /** A subscriber may end the term that it hears of. The others hear of that end after the beginning, and not before it. */
  tell(leads: boolean): void {
    this.untold.push(leads);
    if (this.untold.length > 1) return;
    runOutsideScopes(() => {
      for (let next = this.untold[0]; next !== undefined; next = this.untold[0]) {
        this.changes.next(next);
        this.untold.shift();
      }
    });
  }

  complete(): void {
    runOutsideScopes(() => {
      this.changes.complete();
    });
  }
}
