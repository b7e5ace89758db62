import { idleTimerAt } from '../../client/holding/deadline.js';
import { onAbort } from '../../client/waiting/on-abort.js';
import { runOutsideScopes, type Scope } from '../../client/scope/scope.js';
import type { Tenure } from '../../client/holding/tenure.js';
import { clearTimer } from '../../runtime/runtime.js';
import type { Term } from '../../api/election.js';
import type { HeldLease } from '../held-lease.js';

/** A term of this process, from the grant of the lock until its release or loss. */
export class HeldTerm implements Term {
  /** Resolves when this process has lost or released the lock. */
  readonly over: Promise<void>;
  private readonly controller = new AbortController();
  private settle: () => void = () => undefined;

  constructor(
    private readonly tenure: Tenure,
    private readonly lease: HeldLease,
    /** The scope of the callback, which has the lock. */
    readonly scope: Scope,
    /** Called once, after the callback's signal has reported the end of the term. */
    private readonly onTold: () => void,
  ) {
    this.over = new Promise((resolve) => {
      this.settle = resolve;
    });
    onAbort(lease.signal, () => {
      this.tell(lease.signal.reason);
      this.settle();
    });
    // Other code may get the lease by `currentLease` or `leases`, and release it while the callback runs.
    lease.onReleased = (releasing) => {
      this.tell(over());
      // If the release has no answer, the term ends at the lease's deadline. The release is repeated in the background.
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

  /** The clock decides: a check after the deadline announces the end even if the timer is late. */
  get isPromised(): boolean {
    return this.lease.held && !this.controller.signal.aborted;
  }

  /** Asks the callback to end. It has the rest of the present lease, which is not renewed any more. */
  resign(reason: unknown): void {
    if (!this.lease.held) return;
    this.tenure.runOut();
    this.tell(reason);
  }

  /** Ends the term after its callback. */
  async end(): Promise<void> {
    this.tell(over());
    this.scope.end();
    void this.lease.release();
    await this.over;
  }

  /** Asks the callback to end. It has the lock until it has ended. */
  tell(reason: unknown): void {
    if (this.controller.signal.aborted) return;
    runOutsideScopes(() => {
      this.controller.abort(reason);
    });
    this.onTold();
  }
}

/** The error of an abort without a reason, which Node and `fetch` recognize. */
const over = (): DOMException => new DOMException('The term has ended', 'AbortError');

export const resigned = (): DOMException => new DOMException('The leader has resigned', 'AbortError');
