import { defer, distinctUntilChanged, filter, map, merge, Observable, of, Subject } from 'rxjs';
import { runOutsideScopes } from '../../client/scope/scope.js';

interface Change {
  readonly name: string;
  readonly leads: boolean;
}

/**
 * Reports to the subscribers of elections whether this process leads: first the present value, then each change, in
 * order.
 */
export class LeaderNews {
  private readonly changes = new Subject<Change>();
  private readonly untold: Change[] = [];
  /** By name, the number of subscribers. */
  private readonly subscribers = new Map<string, number>();

  get watched(): Iterable<string> {
    return this.subscribers.keys();
  }

  of(name: string, isLeader: () => boolean): Observable<boolean> {
    const changes = this.changes.pipe(
      filter((change) => change.name === name),
      map(({ leads }) => leads),
    );
    // A subscriber may resign at its first value, so it is subscribed to changes before.
    const news = merge(
      changes,
      defer(() => of(isLeader())),
    ).pipe(distinctUntilChanged());
    return new Observable((subscriber) => {
      this.count(name, 1);
      subscriber.add(() => {
        this.count(name, -1);
      });
      return runOutsideScopes(() => news.subscribe(subscriber));
    });
  }

  /** A subscriber may end the term while it is reported. The queue lets all subscribers see the begin before the end. */
  tell(name: string, leads: boolean): void {
    this.untold.push({ name, leads });
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

  private count(name: string, by: number): void {
    const count = (this.subscribers.get(name) ?? 0) + by;
    if (count > 0) this.subscribers.set(name, count);
    else this.subscribers.delete(name);
  }
}
