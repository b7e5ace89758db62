import { isLockUnavailableError } from '../../api/errors.js';
import type { LeaseLimit } from '../../store/lock-store.js';
import { now, timerAt } from './deadline.js';
import { backoff } from '../waiting/waiting.js';

/** What a call asks of its store: for how long it promises to hold the lock, and for how long it would like to. */
export interface WantedTimes {
  /** ms; of a fixed lease, or a `minHoldTime`. 0 for a renewed lease. */
  readonly promised: number;
  /** ms */
  readonly wished: number;
}

/** Keeps the times of a client within the limit of its store, if the store has one. */
export class LeaseBounds {
  constructor(
    private readonly limit: LeaseLimit | undefined,
    private readonly isClosed = () => false,
  ) {}

  /** What a renewed lease takes, ms. */
  within(leaseTime: number): number {
    const { most = 0 } = this.limit ?? {};
    return most > 0 && most < leaseTime ? most : leaseTime;
  }

  /** Whether the store has to be asked before a hold of that length. */
  exceeds(time: number): boolean {
    return this.limit !== undefined && time > this.limit.most;
  }

  /**
   * Asks the store for longer holds. Asks again until then if the call promises one.
   * @throws LockUnavailableError with the nodes that have not acknowledged it
   */
  async admit(name: string, { promised, wished }: WantedTimes, until: number): Promise<void> {
    const { limit } = this;
    if (limit === undefined) return;
    for (let failures = 0; ; failures++) {
      // The watchdog takes the longer lease as soon as it may.
      const asked = limit.raise(name, Math.max(promised, wished));
      if (promised <= limit.most && limit.most > 0) return;
      const refusal = await asked;
      // The store says by itself why it does not know the limit.
      if (promised <= limit.most || limit.most === 0) return;
      const pause = backoff(failures);
      // The client refuses the call.
      if (this.isClosed()) return;
      if (refusal !== undefined && (now() + pause >= until || !isLockUnavailableError(refusal)))
        throw refusal;
      await new Promise<void>((resolve) => timerAt(now() + pause, resolve));
    }
  }
}
