import type { Lease } from '../../api/lock.js';
import type { Processes } from './processes.js';

/** ms between SIGTERM and SIGKILL, at most. A short lease gives a third of itself. */
const GRACE = 2_000;
/** ms between looks for processes that have not ended. */
const PAUSE = 20;

/**
 * Ends the processes of a command with the lease: SIGTERM when the lease is lost, or when so little is left of it that the
 * renewals have failed; SIGKILL at its deadline, at the latest.
 */
export class Leash {
  private readonly grace: number;
  private deadline: number;
  private timer: NodeJS.Timeout | undefined;
  private toldAt: number | undefined;

  constructor(
    private readonly lease: Lease,
    leaseTime: number,
    private readonly processes: Processes,
    /** Is told why, once. */
    private readonly onEnd: (reason: string) => void,
  ) {
    // A store may give less than was asked for.
    this.grace = Math.min(GRACE, Math.min(leaseTime, lease.remainingTime()) / 3);
    this.deadline = performance.now() + lease.remainingTime();
    lease.signal.addEventListener('abort', this.lost);
    if (lease.signal.aborted) this.lost();
    else this.look();
  }

  /** The command was told to end. */
  get isEnding(): boolean {
    return this.toldAt !== undefined;
  }

  /** The command has ended by itself: its other processes go on, unless the lease has ended. */
  async ended(): Promise<void> {
    this.lease.signal.removeEventListener('abort', this.lost);
    while (this.isEnding && performance.now() < this.deadline && this.processes.alive()) {
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
    }
    clearTimeout(this.timer);
    if (this.isEnding) this.processes.signal('SIGKILL');
  }

  private readonly look = (): void => {
    this.deadline = performance.now() + this.lease.remainingTime();
    const left = this.lease.remainingTime() - this.grace;
    if (left <= 0) this.tell('the lease cannot be renewed');
    else this.timer = setTimeout(this.look, Math.min(left, 2_147_483_647));
  };

  private readonly lost = (): void => {
    // Another process may have the lock already, long before the deadline.
    this.deadline = Math.min(this.deadline, performance.now() + this.grace);
    const reason: unknown = this.lease.signal.reason;
    this.tell(reason instanceof Error ? reason.message : String(reason));
  };

  private tell(reason: string): void {
    clearTimeout(this.timer);
    if (!this.isEnding) {
      this.toldAt = performance.now();
      this.onEnd(reason);
      this.processes.signal('SIGTERM');
    }
    this.timer = setTimeout(
      () => {
        this.processes.signal('SIGKILL');
      },
      Math.max(0, this.deadline - performance.now()),
    );
  }
}
