import { monotonicTime } from '../../runtime/runtime.js';

/** ms after a split vote during which one member is asked before the others. */
const MEMORY = 500;
const ROOM = 1_000;

/**
 * The names whose votes were split lately: several processes asked at the same time, each got some members, and none a
 * majority. So all processes ask the same member first for a while, and only the process that gets its grant asks the
 * others.
 */
export class SplitVotes {
  private readonly until = new Map<string, number>();

  add(names: readonly string[]): void {
    if (this.until.size > ROOM) this.until.clear();
    for (const name of names) this.until.set(name, monotonicTime() + MEMORY);
  }

  /** ms for which one member is asked first for these names; 0 if all are asked at once. */
  remaining(names: readonly string[]): number {
    if (this.until.size === 0) return 0;
    const time = monotonicTime();
    return Math.max(0, ...names.map((name) => (this.until.get(name) ?? time) - time));
  }
}
