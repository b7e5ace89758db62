import { monotonicTime } from '../../runtime/runtime.js';

/** For how long after a split vote one member is asked before the others, ms. */
const MEMORY = 1_000;
/** When the refusal of one member alone is checked with all other members, unless a message has come since, ms. */
export const CHECK = 100;
/** How long the last winner of a race waits before it asks again, ms. */
const HEAD_START = 5;

interface Race {
  /** Until then one member is asked first. */
  readonly until: number;
  /** From then on all members are asked, because one member alone has refused and no message has followed. */
  checkFrom: number;
  /** This process has been granted the lock last. */
  isWinner: boolean;
}

/**
 * Remembers the names for which several processes have been asking at the same time: the races. If each process gets a part
 * of the members, none wins (a split vote), and after a pause the processes may well meet again. So all of them ask the same
 * member first, and only the process that it grants the lock goes on to the other members.
 */
export class Contention {
  private readonly races = new Map<string, Race>();
  private sweepAt = 1_000;

  /** Whether one member has to be asked before the others. */
  asksOneFirst(names: readonly string[]): boolean {
    const time = monotonicTime();
    const races = this.of(names).filter(({ until }) => until > time);
    return races.length > 0 && races.every(({ checkFrom }) => checkFrom > time);
  }

  /** ms that an attempt leaves to the waiters of other processes. They hear of a release later than the process itself. */
  headStart(names: readonly string[]): number {
    return this.of(names).some(({ isWinner }) => isWinner) ? HEAD_START : 0;
  }

  /** A vote was split, or several waiters may have been woken at the same time. */
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

  /** A message has come: the refusal of one member is out of date. */
  woken(name: string): void {
    const race = this.races.get(name);
    if (race !== undefined) race.checkFrom = Infinity;
  }

  /** One member alone has refused. It may know a hold that no other member knows, of a process that has died. */
  refusedByOne(names: readonly string[]): void {
    const check = monotonicTime() + CHECK;
    for (const race of this.of(names)) {
      race.checkFrom = Math.min(race.checkFrom, check);
      race.isWinner = false;
    }
  }

  /** A majority has granted or refused. */
  decided(names: readonly string[], isWinner: boolean): void {
    const time = monotonicTime();
    for (const name of names) {
      const race = this.races.get(name);
      if (race === undefined) continue;
      // The member that is asked first has refused a free lock. It is not to be asked alone before the next split vote.
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
