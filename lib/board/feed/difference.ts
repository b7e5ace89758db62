import type { BoardChange, BoardHolder, BoardLock } from './wire.js';
import type { Snapshot } from './snapshot.js';

/** The new and the different locks, and the names of the locks that are gone. */
export function differenceOf(before: readonly BoardLock[], after: readonly BoardLock[]) {
  const known = new Map(before.map((lock) => [lock.name, lock]));
  const set = after.filter((lock) => {
    const former = known.get(lock.name);
    known.delete(lock.name);
    return former === undefined || (former !== lock && JSON.stringify(former) !== JSON.stringify(lock));
  });
  return { set, gone: [...known.keys()] };
}

/**
 * The changes between two looks. A hold or wait that began and ended between them is not seen. If not all locks are shown,
 * new and missing locks are not reported: they may have been there.
 * @param onEnd gets each hold that has ended between them, which was seen before
 */
export function changesBetween(
  before: Snapshot,
  after: Snapshot,
  onEnd: (lock: BoardLock, holder: BoardHolder) => void = () => undefined,
): Omit<BoardChange, 'id'>[] {
  const isPartial = before.more || after.more;
  const changes: Omit<BoardChange, 'id'>[] = [];
  const compare = (former: BoardLock, lock: BoardLock) => {
    const pairs = pairsOf(former, lock);
    const kept = new Set(pairs.values());
    const left = former.holders.filter((holder) => !kept.has(holder));
    for (const holder of left) onEnd(former, holder);
    const came = listOf(lock.holders.filter((holder) => !pairs.has(holder)));
    const add = (type: string, text: string, tone: BoardChange['tone'] = 'calm') =>
      changes.push({ at: after.at, type, tone, name: lock.name, text });
    if (left.length > 0 && came !== '' && former.waiting > 0) add('handed on', `${listOf(left)} → ${came}`);
    else {
      if (left.length > 0) add('released', listOf(left));
      if (came !== '') add('acquired', came);
    }
    if (former.waiting === 0 && lock.waiting > 0)
      add('waited for', `${String(lock.waiting)} waiting`, 'note');
    if (former.waiting > 0 && lock.waiting === 0) add('nothing waits', '');
  };
  for (const lock of after.locks.values()) {
    const former = before.locks.get(lock.name);
    if (former !== undefined || !isPartial) compare(former ?? freeLike(lock), lock);
  }
  for (const former of before.locks.values())
    if (!after.locks.has(former.name) && !isPartial) compare(former, freeLike(former));
  return changes;
}

const freeLike = (lock: BoardLock): BoardLock => ({ ...lock, holders: [], waiting: 0, waitingSince: null });

function listOf(holders: readonly BoardHolder[]): string {
  const labels = holders
    .slice(0, 3)
    .map(({ label }) => label)
    .join(', ');
  return holders.length > 3 ? `${labels} and ${String(holders.length - 3)} more` : labels;
}

/** Two looks at one moment differ by the time that the answers took, ms. */
const TOLERANCE = 500;
const isNear = (one: number | null, other: number | null): boolean =>
  one !== null && other !== null && Math.abs(one - other) <= TOLERANCE;

/** The moment of the look before, if it is the same one. */
export const steady = (moment: number | null, former: number | null): number | null =>
  isNear(moment, former) ? former : moment;

/**
 * The holders that two looks at a lock have both seen, the later one first. A hold has no name of its own, and its data
 * change: its label is found after a while, and if several owners share a lock, the store knows only the start of the last
 * one.
 */
export function pairsOf(former: BoardLock, lock: BoardLock): Map<BoardHolder, BoardHolder> {
  const pairs = new Map<BoardHolder, BoardHolder>();
  const left = new Set(former.holders);
  const isSameGrant = former.token === lock.token;
  const isShared = former.kind === 'semaphore' || former.kind === 'read-write';
  const isSame = (one: BoardHolder, other: BoardHolder) => {
    const isSameLabel = one.label === other.label;
    if (isNear(one.since, other.since)) return isSameGrant || isSameLabel;
    const isUnknown = one.since === null || other.since === null;
    return isUnknown && (isShared || isSameGrant) && (isSameLabel || isNear(one.until, other.until));
  };
  for (const holder of lock.holders) {
    // The surest one first: one whose beginning is known.
    const before = [...left]
      .filter((one) => isSame(holder, one))
      .sort((a, b) => (b.since ?? 0) - (a.since ?? 0))[0];
    if (before === undefined) continue;
    pairs.set(holder, before);
    left.delete(before);
  }
  return pairs;
}
