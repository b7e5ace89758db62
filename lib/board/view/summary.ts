import { timeText } from './times.js';
import { h, type Tree } from './tree.js';
import { timesOf } from './lock-row.js';
import type { BoardLock } from './wire.js';

/** The numbers at the top. @param isUnseen nothing has been read yet */
export function summaryOf(
  locks: Iterable<BoardLock>,
  { at, more, isUnseen }: { at: number; more: boolean; isUnseen: boolean },
): Tree[] {
  let held = 0;
  let waited = 0;
  let waiting = 0;
  let oldest: number | undefined;
  let longest: number | undefined;
  for (const lock of locks) {
    const { age, wait } = timesOf(lock, at);
    if (lock.holders.length > 0) held++;
    if (lock.waiting > 0) waited++;
    waiting += lock.waiting;
    oldest = longer(oldest, age);
    longest = longer(longest, wait);
  }
  const count = (number: number) => (isUnseen ? '–' : `${number.toLocaleString('en')}${more ? '+' : ''}`);
  return [
    tile('Locks held', count(held)),
    tile('Waited for', count(waited), waited > 0 ? 'is-waited' : ''),
    tile('Waiting', count(waiting), waiting > 0 ? 'is-waited' : ''),
    tile('Oldest hold', longestText(oldest)),
    tile('Longest wait', longestText(longest), waiting > 0 ? 'is-waited' : ''),
  ];
}

/** Undefined is a time that is not known. */
const longer = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined || other === undefined ? (one ?? other) : Math.max(one, other);
const longestText = (ms: number | undefined): string => (ms === undefined ? '–' : timeText(ms));

const tile = (title: string, value: string, state = ''): Tree =>
  h('div', { class: `tile ${state}`.trim() }, h('dt', {}, title), h('dd', {}, value));
