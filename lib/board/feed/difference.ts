import type { BoardChange, BoardHolder, BoardLock } from '../view/wire.js';
import { pairsOf } from './pairs.js';
import type { Snapshot } from './snapshot.js';

/** A change, before it has a number. */
export type Change = Omit<BoardChange, 'id'>;

/** The locks that are new or different, and those that are gone. */
export function differenceOf(
  before: Snapshot | undefined,
  after: Snapshot,
): { readonly set: BoardLock[]; readonly gone: string[] } {
  const set = [...after.locks.values()].filter((lock) => !isEqual(before?.locks.get(lock.name), lock));
  const gone = [...(before?.locks.keys() ?? [])].filter((name) => !after.locks.has(name));
  return { set, gone };
}

const isEqual = (one: BoardLock | undefined, other: BoardLock): boolean =>
  one !== undefined && JSON.stringify(one) === JSON.stringify(other);

/**
 * The changes between two looks. A hold or wait that began and ended between them is not seen. If not all locks are shown,
 * new and missing locks are not reported: they may have been there.
 */
export function changesBetween(before: Snapshot, after: Snapshot): Change[] {
  const { at } = after;
  const isPartial = before.more || after.more;
  const changes: Change[] = [];
  for (const lock of after.locks.values()) {
    const former = before.locks.get(lock.name);
    if (former === undefined && isPartial) continue;
    changes.push(...changesOf(former ?? freeLike(lock), lock, at));
  }
  for (const former of before.locks.values()) {
    if (!after.locks.has(former.name) && !isPartial) changes.push(...changesOf(former, freeLike(former), at));
  }
  return changes;
}

const freeLike = (lock: BoardLock): BoardLock => ({ ...lock, holders: [], waiting: 0, waitingSince: null });

function changesOf(former: BoardLock, lock: BoardLock, at: number): Change[] {
  const { name } = lock;
  const changes: Change[] = [];
  const pairs = pairsOf(former, lock);
  const kept = new Set(pairs.values());
  const left = former.holders.filter((holder) => !kept.has(holder));
  const came = lock.holders.filter((holder) => !pairs.has(holder));
  const [from] = left;
  const [to] = came;
  if (from !== undefined && to !== undefined && former.waiting > 0 && left.length === came.length) {
    changes.push({ at, type: 'handed-on', name, text: `${labelsOf(left)} → ${labelsOf(came)}` });
  } else {
    if (from !== undefined) changes.push({ at, type: 'released', name, text: labelsOf(left) });
    if (to !== undefined) changes.push({ at, type: 'acquired', name, text: labelsOf(came) });
  }
  if (former.waiting === 0 && lock.waiting > 0)
    changes.push({ at, type: 'waiting', name, text: `${String(lock.waiting)} waiting` });
  if (former.waiting > 0 && lock.waiting === 0) changes.push({ at, type: 'waiting-over', name, text: '' });
  return changes;
}

function labelsOf(holders: readonly BoardHolder[]): string {
  const labels = holders.slice(0, 3).map(({ label }) => label);
  return holders.length > 3
    ? `${labels.join(', ')} and ${String(holders.length - 3)} more`
    : labels.join(', ');
}
