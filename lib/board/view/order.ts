import type { SortKey } from './columns.js';
import type { BoardLock } from './wire.js';

/** The locks in the order of a column: the oldest hold first, the longest queue first, or by name. */
export function inOrder(locks: readonly BoardLock[], key: SortKey, isReversed = false): BoardLock[] {
  const sorted = [...locks].sort((a, b) => COMPARE[key](a, b) || byName(a, b));
  return isReversed ? sorted.reverse() : sorted;
}

const byName = (a: BoardLock, b: BoardLock): number => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
const COMPARE: Readonly<Record<SortKey, (a: BoardLock, b: BoardLock) => number>> = {
  name: byName,
  age: (a, b) => sinceOf(a) - sinceOf(b),
  waiting: (a, b) => b.waiting - a.waiting || (a.waitingSince ?? LATEST) - (b.waitingSince ?? LATEST),
};

/** After all moments. Two of them differ by nothing, as two infinities do not. */
const LATEST = Number.MAX_SAFE_INTEGER;

/** Locks without a holder come last. */
const sinceOf = ({ holders }: BoardLock): number =>
  holders.reduce((first, { since }) => Math.min(first, since ?? LATEST), LATEST);
