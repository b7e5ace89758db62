import { monotonicTime, random } from '../../lock.runtime.js';
/** For how long after the last sign of contention one member is asked before the others, ms. */
const MEMORY = 1_000;
/** When the refusal of one member alone is checked with all other members, unless a message has come since, ms. */
export const CHECK = 100;
/** How many strays are remembered per name. */
const STRAYS = 10;
/** The longest retreat after the second split vote in a row, ms. It doubles with each further one, up to a limit. */
const RETREAT = 10;
const LONGEST_RETREAT = 500;
/** By how much an attempt is delayed for each race that it should have lost before, and the limit of the delay, ms. */
const STEP = 1;
const LONGEST_DELAY = 5;

interface Race {
  /** Until then one member is asked before the others. */
  until: number;
  /** Split votes in a row. */
  splits: number;
  /** From then on all members are asked, because one member alone has refused and no message has followed. */
  checkFrom: number;
  /** A message has come since the last attempt. */
  woken: boolean;
  /** The owner that a majority has named last. */
  holder: string | undefined;
  /** Races in a row that other clients have won after a message for all. */
  lost: number;
  /** The clients that have been in the way, and when each of them was in the way the last time. */
  readonly rivals: Map<string, number>;
  /** Owners that a minority of the members takes for the holder. */
  readonly strays: Set<string>;
}

/**
 * Remembers for which names several processes have been asking at the same time. When each process has got a part of the
 * members, none wins (a split vote), and after a retreat of random length the processes may well meet again. So all of them
 * ask the same member first, and only the process that it grants the lock goes on to the other members.
 */
export class Contention {
  private readonly races = new Map<string, Race>();
  private sweepAt = 1_000;

  /** Whether one member has to be asked before the others. */
  asksOneFirst(names: readonly string[]): boolean {
    if (!this.knows(names)) return false;
    const now = monotonicTime();
    const races = names.flatMap((name) => this.races.get(name) ?? []).filter(({ until }) => until > now);
    return races.length > 0 && races.every(({ checkFrom }) => now < checkFrom);
  }

  /** Several waiters may have been woken at the same time. */
  expect(name: string): void {
    const race = this.raceOf(name);
    race.until = monotonicTime() + MEMORY;
    race.checkFrom = Infinity;
  }

  /** A message has come: the refusal of one member is out of date. */
  woken(name: string): void {
    const race = this.races.get(name);
    if (race === undefined) return;
    race.checkFrom = Infinity;
    race.woken = true;
  }

  /**
   * ms by which to delay an attempt. Among k clients that come back each time, a waiter should lose k - 2 races and win the
   * next one. Waiters that have lost fewer races give way to the others, which otherwise would not win for a long time:
   * chance decides which client asks first, and mostly it is the client that has just had the lock.
   */
  delayFor(names: readonly string[]): number {
    const since = monotonicTime() - MEMORY;
    const ahead = names.map((name) => {
      const race = this.races.get(name);
      if (race === undefined) return 0;
      for (const [rival, seen] of race.rivals) if (seen < since) race.rivals.delete(rival);
      return race.rivals.size - 1 - race.lost;
    });
    return Math.min(Math.max(...ahead, 0) * STEP, LONGEST_DELAY);
  }

  /** One member alone has refused. */
  refusedByOne(names: readonly string[], holder: string | undefined): void {
    const now = monotonicTime();
    for (const name of names) {
      const race = this.raceOf(name);
      if (race.checkFrom === Infinity) race.checkFrom = now + CHECK;
      lose(race, holder);
    }
  }

  /** There has been contention for one of the names. */
  knows(names: readonly string[]): boolean {
    return this.races.size > 0 && names.some((name) => this.races.has(name));
  }

  /** A minority of the members names this owner, which is not the holder. */
  stray(names: readonly string[], owner: string | undefined): void {
    if (owner === undefined) return;
    for (const name of names) {
      const strays = this.races.get(name)?.strays;
      if (strays === undefined) continue;
      strays.add(owner);
      // Owners are never used twice, so forgetting the oldest one costs nothing but another check.
      for (const oldest of strays) if (strays.size > STRAYS) strays.delete(oldest);
    }
  }

  isStray(names: readonly string[], owner: string | undefined): boolean {
    return owner !== undefined && names.some((name) => this.races.get(name)?.strays.has(owner));
  }

  /** @returns ms for which to retreat before the next attempt */
  split(names: readonly string[]): number {
    let splits = 0;
    for (const name of names) {
      this.expect(name);
      splits = Math.max(splits, ++this.raceOf(name).splits);
    }
    // After the first split vote no retreat is necessary, because all processes then ask one member before the others.
    return splits === 1 ? 0 : random() * Math.min(RETREAT * 2 ** (splits - 2), LONGEST_RETREAT);
  }

  granted(names: readonly string[]): void {
    this.decided(names, (race) => {
      race.lost = 0;
    });
  }

  /**
   * Another owner has the lock.
   * @param isCertain whether a majority of the members names it. If not, these members are a majority only together with
   *   members that have not answered
   */
  taken(names: readonly string[], holder: string | undefined, isCertain: boolean): void {
    this.decided(names, (race) => {
      if (isCertain) race.holder = holder;
      lose(race, holder);
    });
  }

  /** Whether a majority has named this owner. */
  isHolder(names: readonly string[], owner: string | undefined): boolean {
    return owner !== undefined && names.some((name) => this.races.get(name)?.holder === owner);
  }

  private decided(names: readonly string[], learn: (race: Race) => void): void {
    for (const name of names) {
      const race = this.races.get(name);
      if (race === undefined) continue;
      learn(race);
      race.splits = 0;
      race.checkFrom = Infinity;
      race.woken = false;
    }
  }

  private raceOf(name: string): Race {
    let race = this.races.get(name);
    if (race === undefined) {
      this.sweep();
      race = {
        until: -Infinity,
        splits: 0,
        checkFrom: Infinity,
        woken: false,
        holder: undefined,
        lost: 0,
        rivals: new Map(),
        strays: new Set(),
      };
      this.races.set(name, race);
    }
    return race;
  }

  private sweep(): void {
    if (this.races.size < this.sweepAt) return;
    const now = monotonicTime();
    for (const [name, { until }] of this.races) if (until < now) this.races.delete(name);
    this.sweepAt = Math.max(1_000, 2 * this.races.size);
  }
}

/** @param holder `<client>:<number>` */
function lose(race: Race, holder: string | undefined): void {
  if (race.woken) race.lost++;
  race.woken = false;
  if (holder !== undefined) race.rivals.set(holder.slice(0, holder.lastIndexOf(':')), monotonicTime());
}
