import { onOneLine } from '../../runtime/text.js';
import type { BoardLock, BoardState } from '../feed/wire.js';
import { groupBy } from '../group-by.js';
import type { Ui, View } from './ui.js';

/** A row: several locks of one group that are wanted, or one lock. */
export interface Entry {
  readonly key: string;
  /** Of the group, or of the lock. */
  readonly name: string;
  readonly group: string;
  readonly locks: readonly BoardLock[];
  /** The locks of the group have rows of their own; undefined for one lock. */
  readonly isOpen: boolean | undefined;
  /** It is below the row of its group. */
  readonly isInGroup: boolean;
}

/** So many locks are shown without their groups being opened. */
export const FEW = 30;

export const SORTS = { wait: 'Waiting', age: 'Held for', name: 'Lock' } as const;
type Sort = keyof typeof SORTS;
export const sortOf = ({ sort }: Ui): { readonly by: Sort; readonly isReversed: boolean } => {
  const by = sort.replace('-', '');
  return { by: by in SORTS ? (by as Sort) : 'wait', isReversed: sort.startsWith('-') };
};

/** The locks that are looked for. */
export function wantedOf({ state, ui }: View): BoardLock[] {
  const query = ui.q.trim().toLowerCase();
  // As it is, or as the page shows it.
  const isFound = (text: string) =>
    [text, onOneLine(text)].some((each) => each.toLowerCase().includes(query));
  return state.locks.filter(({ name, group, kind, holders, waiting, waiters }) => {
    if (ui.kind !== '' && kind !== ui.kind) return false;
    if (ui.state === 'held' && holders.length === 0) return false;
    if (ui.state === 'waited' && waiting === 0) return false;
    if (ui.state === 'fixed' && !holders.some(({ fixed }) => fixed)) return false;
    if (ui.holder !== '' && !waiters.includes(ui.holder) && !holders.some(({ label }) => label === ui.holder))
      return false;
    return query === '' || isFound(name) || isFound(group) || holders.some(({ label }) => isFound(label));
  });
}

/** The rows of the locks that are looked for: by their groups, the one with the longest wait first. */
export function entriesOf(view: View): Entry[] {
  const { ui, few } = view;
  const wanted = wantedOf(view);
  const { by, isReversed } = sortOf(ui);
  const direction = isReversed ? -1 : 1;
  const sorted = wanted.sort((a, b) => direction * (COMPARE[by](a, b) || byName(a, b)));
  // In the order of their first locks.
  return [...groupBy(sorted, ({ group }) => group)].flatMap(([group, locks]) => {
    const isOpen = (wanted.length <= few && !ui.shut.includes(group)) || ui.open.includes(group);
    const isInGroup = locks.length > 1;
    const rows = locks.map((lock) => {
      const { name } = lock;
      return { key: `lock ${name}`, name, group, locks: [lock], isOpen: undefined, isInGroup };
    });
    const head = { key: `group ${group}`, name: group, group, locks, isOpen, isInGroup: false };
    return isInGroup ? [head, ...(isOpen ? rows : [])] : rows;
  });
}

const byName = (a: BoardLock, b: BoardLock): number => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
/** After all moments. Two of them differ by nothing, as two infinities do not. */
const LATEST = Number.MAX_SAFE_INTEGER;

/** Since when its oldest holder has it; late if it has none, or that is not known. */
const sinceOf = ({ holders }: BoardLock): number =>
  holders.reduce((first, { since }) => Math.min(first, since ?? LATEST), LATEST);
/** Since when its first caller waits; late if none does. */
const waitOf = ({ waiting, waitingSince }: BoardLock): number =>
  waiting > 0 ? (waitingSince ?? LATEST - 1) : LATEST;

export const byWait = (a: BoardLock, b: BoardLock): number =>
  waitOf(a) - waitOf(b) || sinceOf(a) - sinceOf(b);

const COMPARE: Readonly<Record<Sort, (a: BoardLock, b: BoardLock) => number>> = {
  name: byName,
  age: (a, b) => sinceOf(a) - sinceOf(b),
  wait: byWait,
};

/** The time since a moment; undefined if there is none. */
const timeSince = (moment: number, at: number): number | undefined =>
  moment >= LATEST - 1 ? undefined : Math.max(0, at - moment);

/** Sums of locks: of one, of a group or of all. */
export function sumsOf(locks: readonly BoardLock[], at: number) {
  const waited = locks.filter(({ waiting }) => waiting > 0);
  const oldest = locks.reduce((first, lock) => Math.min(first, sinceOf(lock)), LATEST);
  const longest = waited.reduce((first, lock) => Math.min(first, waitOf(lock)), LATEST);
  return {
    held: locks.filter(({ holders }) => holders.length > 0).length,
    fixed: locks.filter(({ holders }) => holders.some(({ fixed }) => fixed)).length,
    holders: new Set(locks.flatMap(({ holders }) => holders.map(({ label }) => label))).size,
    waited: waited.length,
    waiting: waited.reduce((sum, { waiting }) => sum + waiting, 0),
    oldest: timeSince(oldest, at),
    longest: timeSince(longest, at),
  };
}

export const countText = (count: number, one: string, many = `${one}s`): string =>
  `${count.toLocaleString('en')} ${count === 1 ? one : many}`;

export const groupOf = ({ groups }: BoardState, name: string) => groups.find((group) => group.name === name);
