import { queryOf } from '../view/links.js';
import { tableHead } from '../view/columns.js';
import { lockRow } from '../view/lock-row.js';
import {
  changeItem,
  deadlockPanel,
  electionPanel,
  healthPanel,
  isUnseen,
  problemText,
} from '../view/panels.js';
import { summaryOf } from '../view/summary.js';
import { clockText } from '../view/times.js';
import { h, type Child, type Tree } from '../view/tree.js';
import type { BoardDetail, BoardProblem, BoardState } from '../view/wire.js';
import { inOrder } from '../view/order.js';
import { detailBody, detailHead } from '../view/detail.js';
import { actionDialog } from './action-dialog.js';
import { helpDialog } from './help.js';
import { oncePer } from '../once-per.js';
import { htmlOf, shared } from './html.js';
import { toolbar, topBar } from './top-bar.js';

/** How many rows the first screen has. The script shows all. */
const FIRST_ROWS = 200;

const ICON =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Crect x='2' y='7' width='12' height='8' rx='2' fill='%234353d6'/%3E%3Cpath d='M5 7V5a3 3 0 0 1 6 0v2' fill='none' stroke='%234353d6' stroke-width='2'/%3E%3C/svg%3E";

export interface PageOptions {
  readonly state: BoardState;
  /** The beginning of the addresses of the board's files, seen from the page. */
  readonly base: string;
  /** Changes with the files. */
  readonly version: string;
  /** For changes of viewers; undefined if they may not change anything. */
  readonly token: string | undefined;
  /** The lock that is looked at. */
  readonly detail: BoardDetail | undefined;
}

/** The whole page: readable as it is, and brought to life by the script. */
export function pageOf({ state, base, version, token, detail }: PageOptions): string {
  const { instance } = state;
  const { top, main, panels } = partsOf(state);
  const head = h(
    'head',
    {},
    h('meta', { charset: 'utf-8' }),
    h('meta', { name: 'viewport', content: 'width=device-width, initial-scale=1' }),
    h('meta', { name: 'color-scheme', content: 'light dark' }),
    h('meta', { name: 'referrer', content: 'same-origin' }),
    h('title', {}, 'Locks'),
    h('link', { rel: 'icon', href: ICON }),
    h('link', { rel: 'stylesheet', href: `${base}board.css?v=${version}` }),
    h('script', { src: `${base}board.js?v=${version}` }),
  );
  const body = h(
    'body',
    { 'data-base': base, 'data-instance': instance, 'data-token': token },
    h('a', { class: 'skip', href: '#locks' }, 'To the locks'),
    ...top,
    h(
      'main',
      {},
      ...main,
      h('aside', { 'aria-label': 'Store and changes' }, detailSection(state, detail), ...panels),
    ),
    helpDialog(),
    state.writable && actionDialog(),
  );
  return `<!doctype html>${htmlOf(h('html', { lang: 'en' }, head, body))}`;
}

/** What all viewers of a state see. */
const partsOf = oncePer((state: BoardState) => {
  const { at, locks, more, problem, deadlocks, health, own, elections, changes } = state;
  return {
    top: [topBar(state), problemBanner(problem)].map(shared),
    main: [
      h('dl', { id: 'summary' }, ...summaryOf(locks, { at, more, isUnseen: isUnseen(problem) })),
      h(
        'section',
        { id: 'locks', 'aria-label': 'Locks' },
        toolbar(),
        h('div', { class: 'rows' }, lockTable(state)),
        h('p', { id: 'foot' }, footText(state)),
        h('p', { id: 'still' }, `As of ${clockText(at)}. Load the page again to see changes.`),
      ),
    ].map(shared),
    panels: [
      panel('deadlocks', 'Deadlocks', deadlockPanel(deadlocks), deadlocks.length === 0),
      panel('health', 'Store', healthPanel(health, own)),
      panel('elections', 'Elections', electionPanel(elections), elections.length === 0),
      panel('changes', 'Changes', [
        h(
          'ul',
          { class: 'changes', tabindex: '0', 'aria-label': 'The last changes' },
          ...[...changes].reverse().map(changeItem),
        ),
      ]),
    ].map(shared),
  };
});

const problemBanner = (problem: BoardProblem | null): Tree =>
  h(
    'div',
    { id: 'problem', role: 'alert', hidden: problem === null ? true : undefined },
    ...(problem === null ? [] : problemText(problem)),
  );

const detailSection = ({ at, instance, instances }: BoardState, detail: BoardDetail | undefined): Tree =>
  h(
    'section',
    {
      id: 'detail',
      'aria-label': 'One lock',
      tabindex: '-1',
      hidden: detail === undefined ? true : undefined,
    },
    detail !== undefined && detailHead(detail.name, queryOf(instance, instances)),
    detail !== undefined && h('div', { class: 'body' }, ...detailBody(detail, at)),
  );

const panel = (id: string, title: string, content: readonly Child[], isHidden = false): Tree =>
  h(
    'section',
    { id, class: 'panel', 'aria-labelledby': `${id}-title`, hidden: isHidden ? true : undefined },
    h('h2', { id: `${id}-title` }, title),
    h('div', { class: 'content' }, ...content),
  );

function lockTable({ locks, at, instance, instances }: BoardState): Tree {
  const rows = inOrder(locks, 'age')
    .slice(0, FIRST_ROWS)
    .map((lock) => lockRow(lock, at, queryOf(instance, instances, lock.name)));
  return h(
    'table',
    { role: 'table', 'aria-label': 'Locks that are held or waited for' },
    tableHead('age', false, (title) => title),
    h('tbody', { role: 'rowgroup' }, ...rows),
  );
}

function footText({ locks, more, problem }: BoardState): string {
  if (isUnseen(problem)) return 'Not known yet.';
  if (locks.length === 0) return 'No lock is held or waited for.';
  const shown = Math.min(locks.length, FIRST_ROWS);
  return more || shown < locks.length ? `The first ${String(shown)} locks. There are more.` : '';
}
