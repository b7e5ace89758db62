import { idleTimerAt } from '../../client/holding/deadline.js';
import { onAbort } from '../../client/waiting/on-abort.js';
import { runOutsideScopes, type Scope } from '../../client/scope/scope.js';
import type { Tenure } from '../../client/holding/tenure.js';
import { clearTimer } from '../../runtime/runtime.js';
import type { Term } from '../../api/election.js';
import type { HeldLease } from '../held-lease.js';

/** A term of this process: from the grant of the lock until its release or its loss. */
export class HeldTerm implements Term {
  /** Resolves when this process does not hold the lock any more. */
  readonly over: Promise<void>;
  private readonly controller = new AbortController();
  private settle: () => void = () => undefined;

  constructor(
    private readonly tenure: Tenure,
    private readonly lease: HeldLease,
    /** The scope of the callback, which holds the lock. */
    readonly scope: Scope,
    /** Called once, when the callback has just been told that the term is over. */
    private readonly onTold: () => void,
  ) {
    this.over = new Promise((resolve) => {
      this.settle = resolve;
    });
    onAbort(lease.signal, () => {
      this.tell(lease.signal.reason);
      this.settle();
    });
    // Other code has the lease by `currentLease` or `leases`, and may release it while the callback runs.
    lease.onReleased = (releasing) => {
      this.tell(over());
      // A release without an answer is repeated in the background, and the lease promises nothing from its deadline on.
      const timer = idleTimerAt(tenure.deadline, this.settle);
      void releasing.then(() => {
        clearTimer(timer);
        this.settle();
      });
    };
  }

  get name(): string {
    return this.lease.name;
  }

  get number(): number {
    return this.lease.fencingToken;
  }

  get signal(): AbortSignal {
    this.tenure.announceIfOver();
    return this.controller.signal;
  }

  toJSON(): object {
    return { number: this.number };
  }

  /** The clock decides: a deadline that has passed is announced by this look, even where the timer is late. */
  get isPromised(): boolean {
    return this.lease.held && !this.controller.signal.aborted;
  }

  /** The callback has to end. It has the time that the lease has now: nothing makes the lease longer. */
  resign(reason: unknown): void {
    if (!this.isPromised) return;
    this.tenure.runOut();
    this.tell(reason);
  }

  /** The callback has ended. */
  async end(): Promise<void> {
    this.tell(over());
    this.scope.end();
    void this.lease.release();
    await this.over;
  }

  /** The callback has to end, and has the lock until it does. */
  tell(reason: unknown): void {
    if (this.controller.signal.aborted) return;
    runOutsideScopes(() => {
      this.controller.abort(reason);
    });
    this.onTold();
  }
}

/** As an abort without a reason gives it, which Node and `fetch` know. */
const over = (): DOMException => new DOMException('The term has ended', 'AbortError');

export const resigned = (): DOMException => new DOMException('The leader has resigned', 'AbortError');
