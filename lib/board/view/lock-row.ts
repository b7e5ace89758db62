import { onOneLine } from '../../runtime/text.js';
import { bar, leaseState } from './bar.js';
import { ageShare, isoTime, leaseShare, timeText } from './times.js';
import { h, type Child, type Tree } from './tree.js';
import type { BoardHolder, BoardLock, LockKindName } from './wire.js';

/** The times of a lock in its row. */
export interface RowTimes {
  /** ms since the oldest hold began; undefined if that is not known. */
  readonly age: number | undefined;
  /** ms until the first hold ends by itself; undefined if it has no end. */
  readonly left: number | undefined;
  readonly leftShare: number;
  /** ms for which the first of the queue has waited. */
  readonly wait: number | undefined;
}

export function timesOf({ holders, waitingSince }: BoardLock, at: number): RowTimes {
  const since = least(holders.map((holder) => holder.since));
  const ending = holders.reduce<BoardHolder | undefined>(
    (first, holder) => ((holder.until ?? Infinity) < (first?.until ?? Infinity) ? holder : first),
    undefined,
  );
  const left =
    ending?.until === undefined || ending.until === null ? undefined : Math.max(0, ending.until - at);
  return {
    age: since === undefined ? undefined : Math.max(0, at - since),
    left,
    leftShare: left === undefined ? 100 : leaseShare(left, ending?.lease ?? left),
    wait: waitingSince === null ? undefined : Math.max(0, at - waitingSince),
  };
}

const least = (moments: readonly (number | null)[]): number | undefined => {
  const known = moments.filter((moment) => moment !== null);
  return known.length === 0 ? undefined : Math.min(...known);
};

export const KINDS: Readonly<Record<LockKindName, string>> = {
  lock: 'plain',
  fair: 'fair',
  'read-write': 'read-write',
  semaphore: 'semaphore',
};

export const ageText = ({ age }: RowTimes, isHeld: boolean): string =>
  !isHeld ? '' : age === undefined ? 'unknown' : timeText(age);
export const leaseText = ({ left }: RowTimes, isHeld: boolean): string =>
  !isHeld ? '' : left === undefined ? 'no end' : timeText(left);
export const waitText = ({ wait }: RowTimes): string => (wait === undefined ? '' : timeText(wait));

export const classOf = ({ waiting, holders }: BoardLock): string =>
  ['lock', waiting > 0 ? 'is-waited' : '', holders.length === 0 ? 'is-free' : ''].filter(Boolean).join(' ');

/** @param href the lock in detail */
export function lockRow(lock: BoardLock, at: number, href: string): Tree {
  const { name, kind, holders, waiting, token } = lock;
  const times = timesOf(lock, at);
  const isHeld = holders.length > 0;
  return h(
    'tr',
    { class: classOf(lock), role: 'row' },
    h(
      'th',
      { class: 'name', scope: 'row', role: 'rowheader' },
      h('a', { href, title: onOneLine(name) }, onOneLine(name)),
      h('span', { class: 'kind' }, KINDS[kind]),
    ),
    cell('holder', 'Held by', ...holderTexts(holders)),
    cell(
      'age',
      'For',
      isHeld && bar('of-age', ageShare(times.age ?? 0)),
      time(times.age, ageText(times, isHeld)),
    ),
    cell(
      'lease',
      'Left',
      isHeld && bar(`of-lease ${leaseState(times.leftShare)}`, times.leftShare),
      time(times.left, leaseText(times, isHeld)),
    ),
    cell(
      'waiting',
      'Waiting',
      h('span', { class: 'count' }, waiting > 0 ? waiting : ''),
      time(times.wait, waitText(times)),
    ),
    cell('token', 'Token', token > 0 ? token : ''),
  );
}

const cell = (name: string, title: string, ...children: readonly Child[]): Tree =>
  h('td', { class: name, role: 'cell', 'data-title': title }, ...children);

const time = (ms: number | undefined, text: string): Tree =>
  h('time', { datetime: ms === undefined ? undefined : isoTime(ms) }, text);

function holderTexts(holders: readonly BoardHolder[]): Child[] {
  const [first] = holders;
  if (first === undefined) return [h('span', { class: 'none' }, 'no holder')];
  const others = holders.length - 1;
  const all = holders.slice(0, 20).map(({ label }) => onOneLine(label));
  return [
    h('span', { class: 'label', title: all.join('\n') }, onOneLine(first.label)),
    others > 0 && h('span', { class: 'others' }, `and ${String(others)} more`),
  ];
}
