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
  let oldest = 0;
  let longest = 0;
  for (const lock of locks) {
    const { age = 0, wait = 0 } = timesOf(lock, at);
    if (lock.holders.length > 0) held++;
    if (lock.waiting > 0) waited++;
    waiting += lock.waiting;
    oldest = Math.max(oldest, age);
    longest = Math.max(longest, wait);
  }
  const count = (number: number) => (isUnseen ? '–' : `${number.toLocaleString('en')}${more ? '+' : ''}`);
  return [
    tile('Locks held', count(held)),
    tile('Waited for', count(waited), waited > 0 ? 'is-waited' : ''),
    tile('Waiting', count(waiting), waiting > 0 ? 'is-waited' : ''),
    tile('Oldest hold', held > 0 ? timeText(oldest) : '–'),
    tile('Longest wait', waiting > 0 ? timeText(longest) : '–', waiting > 0 ? 'is-waited' : ''),
  ];
}

const tile = (title: string, value: string, state = ''): Tree =>
  h('div', { class: `tile ${state}`.trim() }, h('dt', {}, title), h('dd', {}, value));
