import { setImmediate as turn } from 'node:timers/promises';
import { now } from '../../client/holding/deadline.js';

/** ms */
const SLICE = 5;

/** Work that takes long, in slices between which the event loop turns: leases are renewed meanwhile. */
export class Slices {
  private end = now() + SLICE;

  /** Resolves at once, or in the next turn of the event loop if the present slice has been long enough. */
  async next(): Promise<void> {
    if (now() < this.end) return;
    await turn();
    this.end = now() + SLICE;
  }
}
