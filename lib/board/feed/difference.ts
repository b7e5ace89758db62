import { groupBy } from '../group-by.js';
import type { BoardChange, BoardLock } from './wire.js';
import type { SeenHold, Snapshot } from './snapshot.js';

/** The new and the different locks (an unchanged one is the same object), and the names of the locks that are gone. */
export function differenceOf(before: readonly BoardLock[], after: readonly BoardLock[]) {
  const known = new Map(before.map((lock) => [lock.name, lock]));
  const set = after.filter((lock) => {
    const former = known.get(lock.name);
    known.delete(lock.name);
    return former !== lock;
  });
  return { set, gone: [...known.keys()] };
}

/** The holds that one look has and the other one has not. If a look shows a part of the locks, only of locks that both show. */
export function holdsOnlyIn(one: Snapshot, other: Snapshot): SeenHold[] {
  const isPartial = one.more || other.more;
  return [...one.holds]
    .filter(([key, { name }]) => !other.holds.has(key) && (!isPartial || other.locks.has(name)))
    .map(([, hold]) => hold);
}

/**
 * The changes between two looks. A hold or wait that began and ended between them is not seen. If not all locks are shown,
 * new and missing locks are not reported: they may have been there.
 */
export function changesBetween(before: Snapshot, after: Snapshot): Omit<BoardChange, 'id'>[] {
  const isPartial = before.more || after.more;
  const changes: Omit<BoardChange, 'id'>[] = [];
  const [left, came] = [byLock(holdsOnlyIn(before, after)), byLock(holdsOnlyIn(after, before))];
  for (const name of new Set([...after.locks.keys(), ...before.locks.keys()])) {
    const [former, lock] = [before.locks.get(name), after.locks.get(name)];
    if (isPartial && (former === undefined || lock === undefined)) continue;
    const add = (type: string, text: string, tone: BoardChange['tone'] = 'calm') =>
      changes.push({ at: after.at, type, tone, name, text });
    const [waited, waiting] = [former?.waiting ?? 0, lock?.waiting ?? 0];
    const [from, to] = [listOf(left.get(name)), listOf(came.get(name))];
    if (from !== '' && to !== '' && waited > 0) add('handed on', `${from} → ${to}`);
    else {
      if (from !== '') add('released', from);
      if (to !== '') add('acquired', to);
    }
    if (waited === 0 && waiting > 0) add('waited for', `${String(waiting)} waiting`, 'note');
    if (waited > 0 && waiting === 0) add('nothing waits', '');
  }
  return changes;
}

const byLock = (holds: readonly SeenHold[]) => groupBy(holds, ({ name }) => name);

function listOf(holds: readonly SeenHold[] = []): string {
  const labels = holds.slice(0, 3).map(({ holder }) => holder.label);
  return labels.join(', ') + (holds.length > 3 ? ` and ${String(holds.length - 3)} more` : '');
}
