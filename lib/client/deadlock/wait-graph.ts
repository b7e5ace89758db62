/** The holds that block a wait. */
export interface Blockers {
  readonly owners: readonly string[];
  /**
   * `one`: the wait needs the end of every hold, so one hold that cannot end blocks it. `all`: the end of any hold is
   * enough, as for a permit of a semaphore, so the wait is blocked only if no hold can end.
   */
  readonly rule: 'one' | 'all';
}

/** A wait of work that holds other locks. */
export interface GraphWait {
  readonly id: string;
  /** For comparison with other waits only. */
  readonly since: number;
  /** The owners of the holds of the waiting work. None of these holds ends before the wait does. */
  readonly holds: readonly string[];
  readonly blockers: Blockers;
}

/** Waits that can end only by their time limits. */
export interface Deadlock<W extends GraphWait> {
  /** Each wait waits for a hold of the next one, and the last for a hold of the first. */
  readonly cycle: readonly W[];
  /**
   * All waits that the deadlock depends on: its members, and further holders if a member waits for any of several
   * holds.
   */
  readonly evidence: readonly W[];
}

/**
 * The shortest cycle of waits that includes `start`. Undefined if `start` only waits for a member of a deadlock, or for
 * none.
 *
 * A hold of the wait's own work counts as able to end: mostly the work has started the wait and does not wait for it.
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

/** Removes each wait that can end, until none is left that can; returns the rest. */
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

/** The wait that began last. The id decides a tie, so that all processes choose the same wait. */
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
