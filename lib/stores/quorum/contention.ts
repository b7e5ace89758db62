import { monotonicTime } from '../../runtime/runtime.js';

/** ms after a split vote during which one member is asked before the others. */
const MEMORY = 1_000;
/** ms after a refusal by one member alone, without a message, until all members are asked. */
export const CHECK = 100;
/** ms for which the last winner of a race waits before it asks again. */
const HEAD_START = 5;

interface Race {
  /** Until this moment, one member is asked first. */
  readonly until: number;
  /** From this moment on, all members are asked: one member alone has refused, and no message has followed. */
  checkFrom: number;
  /** Whether this process got the lock last. */
  isWinner: boolean;
}

/**
 * Remembers races: names for which several processes ask at the same time. If each process gets some of the members, no
 * process wins (a split vote), and after a pause the processes may collide again. So all processes ask the same member
 * first, and only the one that gets its grant asks the other members.
 */
export class Contention {
  private readonly races = new Map<string, Race>();
  private sweepAt = 1_000;

  /** Whether one member must be asked before the others. */
  asksOneFirst(names: readonly string[]): boolean {
    const time = monotonicTime();
    const races = this.of(names).filter(({ until }) => until > time);
    return races.length > 0 && races.every(({ checkFrom }) => checkFrom > time);
  }

  /** ms that an attempt leaves to waiters of other processes, because the release reaches them later than this process. */
  headStart(names: readonly string[]): number {
    return this.of(names).some(({ isWinner }) => isWinner) ? HEAD_START : 0;
  }

  /** Called after a split vote, or if several waiters may have been woken at once. */
  expect(names: readonly string[]): void {
    this.sweep();
    const until = monotonicTime() + MEMORY;
    for (const name of names)
      this.races.set(name, {
        until,
        checkFrom: Infinity,
        isWinner: this.races.get(name)?.isWinner ?? false,
      });
  }

  /** Called for a message: an earlier refusal by one member is outdated. */
  woken(name: string): void {
    const race = this.races.get(name);
    if (race !== undefined) race.checkFrom = Infinity;
  }

  /** Called after a refusal by one member alone. It may know a hold of a crashed process that no other member knows. */
  refusedByOne(names: readonly string[]): void {
    const check = monotonicTime() + CHECK;
    for (const race of this.of(names)) {
      race.checkFrom = Math.min(race.checkFrom, check);
      race.isWinner = false;
    }
  }

  /** Called after a grant or refusal by a majority. */
  decided(names: readonly string[], isWinner: boolean): void {
    const time = monotonicTime();
    for (const name of names) {
      const race = this.races.get(name);
      if (race === undefined) continue;
      // The first member has refused a free lock, so it is not asked alone before the next split vote.
      const isMisled = isWinner && race.checkFrom <= time;
      if (race.until <= time || isMisled) this.races.delete(name);
      race.checkFrom = Infinity;
      race.isWinner = isWinner;
    }
  }

  private of(names: readonly string[]): readonly Race[] {
    return this.races.size === 0 ? [] : names.flatMap((name) => this.races.get(name) ?? []);
  }

  private sweep(): void {
    if (this.races.size < this.sweepAt) return;
    this.decided([...this.races.keys()], false);
    this.sweepAt = Math.max(1_000, 2 * this.races.size);
  }
}
