import type { DeadlockStep } from '../../api/deadlock.js';
import type { LockStore } from '../../store/lock-store.js';
import { Confirmation } from './confirmation.js';
import { deadlockOf, follow, type SeenWait, stepOf, type UnblockedWait, waitsUnder } from './look.js';
import { Reading } from './reading.js';
import type { Deadlock } from './wait-graph.js';

/** Limit of locks per look, because each costs a question to the store. */
const MOST_LOCKS = 256;

/**
 * The current deadlocks of all processes, for an observer that waits for nothing itself: it starts from the holders of
 * the locks that have waiters. A deadlock that the library breaks has mostly ended before the observer is certain.
 */
export class StandingDeadlocks {
  /** By the ids of their members. */
  private suspects = new Map<string, Confirmation>();
  private last: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly store: Pick<LockStore, 'inspect' | 'waits'>,
    private readonly clientId: string,
  ) {}

  /**
   * Looks once. A deadlock over several processes is certain after {@link Confirmation.LOOKS} looks in a row, each at
   * least as long after the one before as the processes take between two notes. A look begins only after the one before
   * has ended, as the proof requires.
   * @param names locks that have waiters
   * @returns the deadlocks that are certain
   */
  look(names: readonly string[]): Promise<readonly (readonly DeadlockStep[])[]> {
    const look = this.last.then(() => this.lookOnce(names));
    this.last = look.catch(() => undefined);
    return look;
  }

  private async lookOnce(names: readonly string[]): Promise<readonly (readonly DeadlockStep[])[]> {
    const reading = new Reading(this.clientId, this.store);
    const seen = await follow(await waitsOfHolders(names.slice(0, MOST_LOCKS), reading), reading);
    const before = this.suspects;
    this.suspects = new Map();
    const certain: (readonly DeadlockStep[])[] = [];
    for (const [members, deadlock] of deadlocksAmong(seen)) {
      const confirmation = before.get(members) ?? new Confirmation();
      confirmation.count(deadlock);
      this.suspects.set(members, confirmation);
      const isLocal = deadlock.evidence.every(({ local }) => local !== undefined);
      if (isLocal || confirmation.looks >= Confirmation.LOOKS) certain.push(deadlock.cycle.map(stepOf));
    }
    return certain;
  }
}

async function waitsOfHolders(names: readonly string[], reading: Reading): Promise<readonly UnblockedWait[]> {
  const locks = await Promise.all(names.map((name) => reading.inspect({ name, local: undefined })));
  const owners = new Set(locks.flatMap((stored) => stored?.holders.map(({ owner }) => owner) ?? []));
  const waits = await Promise.all([...owners].map((owner) => waitsUnder(owner, reading)));
  return [...new Map(waits.flat().map((wait) => [wait.id, wait])).values()];
}

/** Each deadlock once. The key lists its members in order, from the least id on. */
function deadlocksAmong(seen: readonly SeenWait[]): ReadonlyMap<string, Deadlock<SeenWait>> {
  const found = new Map<string, Deadlock<SeenWait>>();
  const members = new Set<SeenWait>();
  for (const wait of seen) {
    const deadlock = members.has(wait) ? undefined : deadlockOf(wait, seen);
    if (deadlock === undefined) continue;
    const cycle = fromLeast(deadlock.cycle);
    for (const member of cycle) members.add(member);
    found.set(JSON.stringify(cycle.map(({ id }) => id)), { ...deadlock, cycle });
  }
  return found;
}

function fromLeast(cycle: readonly SeenWait[]): readonly SeenWait[] {
  const ids = cycle.map(({ id }) => id).sort();
  const first = cycle.findIndex(({ id }) => id === ids[0]);
  return [...cycle.slice(first), ...cycle.slice(0, first)];
}
