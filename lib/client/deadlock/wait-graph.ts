/** The holds that a wait ends with. */
export interface Blockers {
  readonly owners: readonly string[];
  /**
   * `one`: each of the holds has to end, so one that cannot end is enough to block the wait. `all`: the end of any hold is
   * enough, as for a permit of a semaphore, so all of them must be unable to end.
   */
  readonly rule: 'one' | 'all';
}

/** A wait of work that holds other locks. */
export interface GraphWait {
  readonly id: string;
  /** When it began. Compared with other waits only. */
  readonly since: number;
  /** The owners of what its work holds. None of these holds ends before the wait. */
  readonly holds: readonly string[];
  readonly blockers: Blockers;
}

/** Waits that end only by their wait times. */
export interface Deadlock<W extends GraphWait> {
  /** Each waits for a hold of the next, the last for one of the first. */
  readonly cycle: readonly W[];
  /** The waits that it follows from: those of the cycle, and those on which a wait for any of several holds depends. */
  readonly evidence: readonly W[];
}

/**
 * The deadlock that a wait is a member of, by the fewest steps. Undefined where it only waits for one, or for none.
 *
 * A hold of the wait's own work counts as one that ends: mostly the work has started the wait and does not wait for it.
 */
export function findDeadlock<W extends GraphWait>(waits: readonly W[], start: W): Deadlock<W> | undefined {
  const stuck = stuckAmong(waits);
  if (!stuck.has(start)) return undefined;
  const cameBy = new Map<W, W | undefined>([[start, undefined]]);
  let last: W | undefined;
  for (const wait of cameBy.keys()) {
    for (const next of blockersAmong(stuck, wait)) {
      if (next === start) last ??= wait;
      else if (!cameBy.has(next)) cameBy.set(next, wait);
    }
  }
  if (last === undefined) return undefined;
  const cycle: W[] = [];
  for (let wait: W | undefined = last; wait !== undefined; wait = cameBy.get(wait)) cycle.unshift(wait);
  return { cycle, evidence: [...cameBy.keys()] };
}

/** The waits of which none can end before another one of them: what is left when all that can end has ended. */
function stuckAmong<W extends GraphWait>(waits: readonly W[]): ReadonlySet<W> {
  const stuck = new Set(waits);
  for (let before = -1; before !== stuck.size;) {
    before = stuck.size;
    const held = new Set([...stuck].flatMap(({ holds }) => holds));
    for (const wait of stuck) if (!isBlocked(wait, held)) stuck.delete(wait);
  }
  return stuck;
}

function isBlocked({ blockers: { owners, rule }, holds }: GraphWait, held: ReadonlySet<string>): boolean {
  const isStuck = (owner: string) => held.has(owner) && !holds.includes(owner);
  return rule === 'one' ? owners.some(isStuck) : owners.length > 0 && owners.every(isStuck);
}

function* blockersAmong<W extends GraphWait>(waits: ReadonlySet<W>, { blockers, holds }: W): Generator<W> {
  const owners = new Set(blockers.owners.filter((owner) => !holds.includes(owner)));
  for (const wait of waits) if (wait.holds.some((owner) => owners.has(owner))) yield wait;
}

/** Of several waits, the one that began last. A tie is decided by the ids, so that all processes choose the same one. */
export function latestOf<W extends GraphWait>(waits: readonly W[]): W | undefined {
  let latest: W | undefined;
  for (const wait of waits) {
    if (
      latest === undefined ||
      wait.since > latest.since ||
      (wait.since === latest.since && wait.id > latest.id)
    )
      latest = wait;
  }
  return latest;
}
