import { isLockUnavailableError } from '../../api/error-guards.js';
import type { LeaseLimit } from '../../store/lock-store.js';
import { now, pauseFor } from './deadline.js';
import { backoff } from '../waiting/waiting.js';

/** The hold time that a call must get, and the hold time that it would like. */
export interface WantedTimes {
  /** ms, for a fixed lease or `minHoldTime`. 0 for a renewed lease. */
  readonly promised: number;
  /** ms */
  readonly wished: number;
}

/** Keeps the hold times of a client within the limit of its store, if the store has a limit. */
export class LeaseBounds {
  constructor(
    private readonly limit: LeaseLimit | undefined,
    private readonly isClosed: () => boolean,
  ) {}

  /** The length of a renewed lease, ms. */
  within(leaseTime: number): number {
    const { most = 0 } = this.limit ?? {};
    return most > 0 && most < leaseTime ? most : leaseTime;
  }

  /** Whether the store must raise its limit before a hold of that length. */
  exceeds(time: number): boolean {
    return this.limit !== undefined && time > this.limit.most;
  }

  /**
   * Asks the store to raise its limit. If the call has promised the time, asks again until the limit allows it.
   * @throws LockUnavailableError with the nodes that have not acknowledged it
   */
  async admit(name: string, { promised, wished }: WantedTimes, until: number): Promise<void> {
    const { limit } = this;
    if (limit === undefined) return;
    for (let failures = 0; ; failures++) {
      // Not awaited if the limit already allows the promise. The watchdog takes the longer lease later.
      const asked = limit.raise(name, Math.max(promised, wished));
      if (promised <= limit.most && limit.most > 0) return;
      const refusal = await asked;
      // If the limit is unknown, the acquisition itself fails with the store's reason.
      if (promised <= limit.most || limit.most === 0) return;
      const pause = backoff(failures);
      // The client refuses the call in the next step.
      if (this.isClosed()) return;
      if (refusal !== undefined && (now() + pause >= until || !isLockUnavailableError(refusal)))
        throw refusal;
      await pauseFor(pause);
    }
  }
}
