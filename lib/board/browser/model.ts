import type { BoardLock, BoardState, BoardUpdate } from '../view/wire.js';

/** How many changes are kept. */
const MOST_CHANGES = 200;

/** The state of the page. */
export class Model {
  readonly locks = new Map<string, BoardLock>();
  /** Without the locks. */
  rest: Omit<BoardState, 'locks'> | undefined;

  set({ locks, ...rest }: BoardState): void {
    this.locks.clear();
    for (const lock of locks) this.locks.set(lock.name, lock);
    this.rest = rest;
  }

  apply({ set = [], gone = [], changes = [], ...others }: BoardUpdate): void {
    if (this.rest === undefined) return;
    for (const lock of set) this.locks.set(lock.name, lock);
    for (const name of gone) this.locks.delete(name);
    const all = [...this.rest.changes, ...changes].slice(-MOST_CHANGES);
    this.rest = { ...this.rest, ...others, changes: all };
  }
}
