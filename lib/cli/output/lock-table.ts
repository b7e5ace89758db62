import { onOneLine } from '../../runtime/text.js';
import type { LockSummary } from '../../api/lock-summary.js';
import { type Column, table } from './table.js';
import { duration } from './text.js';

const COLUMNS: readonly Column[] = [
  { title: 'NAME', least: 12 },
  { title: 'KIND' },
  { title: 'HELD BY', least: 10 },
  { title: 'SINCE', right: true },
  { title: 'LEFT', right: true },
  { title: 'WAITING', right: true },
  { title: 'LONGEST', right: true },
];

/** The lines of a table of locks, its titles first. */
export function lockTable(locks: readonly LockSummary[], width: number): string[] {
  return table(COLUMNS, locks.map(rowOf), width);
}

function rowOf({ name, kind, holders, waiting, longestWait }: LockSummary): string[] {
  const held = holders.length > 0;
  return [
    onOneLine(name),
    kind,
    held ? holdersText(holders.map(({ label }) => onOneLine(label))) : '–',
    held ? duration(greatest(holders.map(({ since }) => since))) : '–',
    held ? duration(greatest(holders.map(({ remaining }) => remaining))) : '–',
    String(waiting),
    duration(longestWait),
  ];
}

/** NaN if one of them is: there may be more numbers than a function takes arguments. */
const greatest = (numbers: readonly number[]): number =>
  numbers.reduce((most, number) => Math.max(most, number), -Infinity);

/** The first of many readers, and how many more. */
function holdersText([first = '', ...more]: readonly string[]): string {
  return more.length === 0 ? first : `${first} +${String(more.length)}`;
}
