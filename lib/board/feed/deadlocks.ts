import { now } from '../../client/holding/deadline.js';
import type { ServiceState } from '../../module/service-state.js';
import { longestWaits } from './longest-waits.js';
import type { BoardDeadlock, BoardLock } from './wire.js';

/** A wait of so many ms is worth the question. */
const LONG = 1_000;
/** How often it is looked for, ms. */
const PAUSE = 1_000;

/** The present deadlocks of all processes. */
export class Deadlocks {
  standing: readonly BoardDeadlock[] = [];
  private lookAt = -Infinity;

  /** Looks for present deadlocks. @throws the error of the store */
  async look(state: ServiceState, locks: readonly BoardLock[], at: number): Promise<void> {
    if (now() < this.lookAt) return;
    const names = longestWaits(
      locks.filter(({ holders }) => holders.length > 0),
      at - LONG,
    );
    if (names.length > 0) this.lookAt = now() + PAUSE;
    const cycles = names.length > 0 ? await state.lookForDeadlocks(names) : [];
    this.standing = cycles.map((cycle) => {
      const found = { at, cycle };
      return this.standing.find((other) => keyOf(other) === keyOf(found)) ?? found;
    });
  }
}

/** The members, whichever comes first. */
const keyOf = ({ cycle }: BoardDeadlock): string =>
  JSON.stringify(cycle.map(({ name, process }) => [name, process].join('\n')).sort());
