import { onOneLine } from '../../runtime/text.js';
import { KINDS } from './lock-row.js';
import { timeText } from './times.js';
import { h, type Child, type Tree } from './tree.js';
import type { BoardDetail, BoardDetailHolder, BoardWaiter } from './wire.js';

/** How many of a queue are shown. */
const MOST_WAITERS = 100;

/** The name, and the way back. @param href the page without it */
export const detailHead = (name: string, href: string): Tree =>
  h(
    'header',
    {},
    h('h2', { class: 'mono' }, onOneLine(name)),
    h('a', { class: 'close', href, 'aria-label': 'Close' }, '×'),
  );

/** The actions of a viewer on a lock. */
export const detailActions = (): Tree =>
  h(
    'div',
    { class: 'actions' },
    h('button', { type: 'button', 'data-action': 'ask' }, 'Ask for it…'),
    h('button', { type: 'button', 'data-action': 'force', class: 'is-grave' }, 'Take it away…'),
  );

/** One lock in full. */
export function detailBody({ lock }: BoardDetail, at: number): Child[] {
  if (lock === null) return [h('p', { class: 'empty' }, 'Free: it has no holder.')];
  const { kind, token, holders, queue, listeners } = lock;
  return [
    h(
      'p',
      { class: 'note' },
      `${KINDS[kind]} lock${token === null ? '' : `, fencing token ${String(token)}`}`,
    ),
    h('h3', {}, 'Held by'),
    holders.length === 0
      ? h('p', { class: 'empty' }, 'No holder.')
      : h('ul', { class: 'holders' }, ...holders.map((holder) => holderItem(holder, at))),
    h('h3', {}, queue.length === 0 ? 'Queue' : `Queue of ${String(queue.length)}`),
    queue.length === 0
      ? h('p', { class: 'empty' }, listeners === 0 ? 'Nothing waits.' : listenersText(listeners))
      : h(
          'ol',
          { class: 'queue', tabindex: '0', 'aria-label': 'Queue' },
          ...queue.slice(0, MOST_WAITERS).map((waiter) => waiterItem(waiter, at)),
        ),
    queue.length > MOST_WAITERS &&
      h('p', { class: 'note' }, `… and ${String(queue.length - MOST_WAITERS)} more`),
    queue.length > 0 && listeners > 0 && h('p', { class: 'note' }, listenersText(listeners)),
  ];
}

const listenersText = (count: number): string =>
  `${String(count)} ${count === 1 ? 'process waits' : 'processes wait'} for its release`;

function holderItem({ label, owner, mode, since, until }: BoardDetailHolder, at: number): Tree {
  const left = until === null ? undefined : Math.max(0, until - at);
  return h(
    'li',
    {},
    named(label, owner),
    mode === 'shared' && h('span', { class: 'kind' }, 'shared'),
    h(
      'span',
      { class: 'times' },
      since !== null && 'for ',
      since !== null && h('time', { 'data-since': since }, timeText(at - since)),
      left === undefined ? ' without end' : ', ',
      left !== undefined && h('time', { 'data-until': until ?? undefined }, timeText(left)),
      left !== undefined && ' left',
    ),
  );
}

const waiterItem = ({ label, owner, mode, since }: BoardWaiter, at: number): Tree =>
  h(
    'li',
    {},
    named(label, owner),
    mode === 'shared' && h('span', { class: 'kind' }, 'shared'),
    h('span', { class: 'times' }, h('time', { 'data-since': since }, timeText(at - since))),
  );

/** The label of an instance, and the owner. */
const named = (label: string | null, owner: string): Tree =>
  h(
    'span',
    { class: 'owner', title: onOneLine(owner) },
    label === null ? false : h('b', {}, onOneLine(label)),
    h(
      'span',
      { class: 'id' },
      onOneLine(label === null ? owner : `${owner.slice(0, 8)}…${/:\d+$/.exec(owner)?.[0] ?? ''}`),
    ),
  );
