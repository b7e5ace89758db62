import { now } from '../../client/holding/deadline.js';
import type { DeadlockStep } from '../../api/deadlock.js';
import type { ServiceState } from '../../module/service-state.js';
import type { BoardDeadlock, BoardLock } from '../view/wire.js';

/** How many of the past are kept. */
const MOST = 20;
/** A deadlock is looked for among so many locks that are waited for: each is a question to the store. */
const MOST_LOCKS = 64;
/** A wait of so many ms is worth the question. */
const LONG = 1_000;
/** How often it is looked for, ms. */
const PAUSE = 1_000;

/** The present deadlocks of all processes, and the last ones that this process was part of. */
export class Deadlocks {
  private past: readonly BoardDeadlock[] = [];
  private standing: readonly BoardDeadlock[] = [];
  private lookAt = -Infinity;

  constructor(private readonly state: ServiceState | undefined) {}

  /** Those that stand first, then the newest. */
  get all(): readonly BoardDeadlock[] {
    const standing = new Set(this.standing.map(keyOf));
    return [...this.standing, ...this.past.filter((deadlock) => !standing.has(keyOf(deadlock)))];
  }

  /** This process has reported a deadlock, as all of its members do. */
  told(cycle: readonly DeadlockStep[], isBroken: boolean): void {
    const told: BoardDeadlock = { at: Date.now(), cycle, state: isBroken ? 'broken' : 'told' };
    const same = this.past.find((other) => keyOf(other) === keyOf(told) && told.at - other.at < LONG);
    const past = this.past.filter((other) => other !== same);
    this.past = [same?.state === 'broken' ? same : told, ...past].slice(0, MOST);
  }

  /** Looks for present deadlocks. @throws the error of the store */
  async look(locks: Iterable<BoardLock>, at: number): Promise<void> {
    if (now() < this.lookAt) return;
    const waited = [...locks].filter(({ waiting, holders }) => waiting > 0 && holders.length > 0);
    const long = waited.filter(({ waitingSince }) => waitingSince === null || at - waitingSince >= LONG);
    const names = long.slice(0, MOST_LOCKS).map(({ name }) => name);
    if (names.length === 0) {
      this.standing = [];
      return;
    }
    this.lookAt = now() + PAUSE;
    const cycles = (await this.state?.lookForDeadlocks(names)) ?? [];
    this.standing = cycles.map((cycle) => {
      const found: BoardDeadlock = { at, cycle, state: 'stands' };
      return this.standing.find((other) => keyOf(other) === keyOf(found)) ?? found;
    });
  }
}

/** The members, whichever comes first. */
const keyOf = ({ cycle }: BoardDeadlock): string =>
  cycle
    .map(({ name, process }) => JSON.stringify([name, process]))
    .sort()
    .join();
