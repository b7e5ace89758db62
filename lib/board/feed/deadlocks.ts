import type { ServiceState } from '../../module/service-state.js';
import { longestWaits } from './longest-waits.js';
import type { BoardDeadlock, BoardLock } from './wire.js';

/** A wait of so many ms is worth the question. */
const LONG = 1_000;

/**
 * The present deadlocks of all processes.
 * @param before the deadlocks of the last look
 * @throws the error of the store
 */
export async function deadlocksIn(
  state: ServiceState,
  locks: readonly BoardLock[],
  at: number,
  before: readonly BoardDeadlock[],
): Promise<BoardDeadlock[]> {
  const held = locks.filter(({ holders }) => holders.length > 0);
  const names = longestWaits(held, at - LONG);
  const cycles = names.length > 0 ? await state.lookForDeadlocks(names) : [];
  return cycles.map((cycle) => {
    const found = { at, cycle };
    return before.find((other) => keyOf(other) === keyOf(found)) ?? found;
  });
}

/** The members, whichever comes first. */
const keyOf = ({ cycle }: BoardDeadlock): string =>
  JSON.stringify(cycle.map(({ name, process }) => [name, process].join('\n')).sort());
