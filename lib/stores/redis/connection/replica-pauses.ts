import { monotonicTime } from '../../../runtime/runtime.js';

/**
 * The time between two connections that are given up because they lead to a replica, ms: short at first, because a name may
 * lead to the new master only a moment after the old one has been demoted, and doubled each time, because often there is no
 * better one.
 */
const SHORTEST = 100;
const LONGEST = 5_000;

/** Says when a connection to a replica may be given up for another one. */
export class ReplicaPauses {
  private leftAt = -Infinity;
  private pause = SHORTEST;

  /** @returns false if the last connection was given up too short a time ago */
  mayLeave(): boolean {
    const sinceLast = monotonicTime() - this.leftAt;
    if (sinceLast < this.pause) return false;
    // No connection has led to a replica for a while: this is another failover.
    this.pause = sinceLast > 2 * LONGEST ? SHORTEST : Math.min(2 * this.pause, LONGEST);
    this.leftAt = monotonicTime();
    return true;
  }
}
