import { onOneLine } from '../../runtime/text.js';
import type { BoardProblem, BoardState } from '../feed/wire.js';
import { attentionOf, type Alert } from './attention.js';
import { actionDialog, helpDialog } from './dialogs.js';
import { countText, entriesOf, sumsOf, wantedOf } from './entries.js';
import { markup, nothing, type Child, type Markup } from './markup.js';
import { detailPanel, holderPanel, panels } from './panels.js';
import { KINDS, lockTable } from './table.js';
import { clockText, timeText, zoneText } from './times.js';
import { hrefOf, queryOf, type View } from './ui.js';

/** How many alerts are shown. */
const MOST_ALERTS = 6;

const CONNECTIONS = {
  connecting: 'Connecting',
  live: 'Live',
  lost: 'Connection lost, trying again',
  refused: 'Refused, trying again',
};

/** What is shown was seen some time ago, and nothing newer is known. */
export const isOld = ({ connection, state }: Pick<View, 'connection' | 'state'>): boolean =>
  connection === 'lost' || connection === 'refused' || state.problem?.kind === 'failed';

/** The page: the first screen, and each screen after it. */
export function board(view: View): Markup {
  const { state, ui, connection } = view;
  const { problem } = state;
  const isLive = connection !== '';
  return markup`
<a class="skip" href="#locks">To the locks</a>
${topBar(view)}
<div id="problem" role="alert" ?hidden=${problem === null}>${problem === null ? nothing : problemText(problem)}</div>
<main class="${isOld(view) ? 'is-old' : ''}">
  ${attention(view)}
  ${lockSection(view)}
  <aside aria-label="Store and changes">
    ${ui.lock === '' ? nothing : detailPanel(view)}
    ${ui.holder === '' ? nothing : holderPanel(view)}
    ${panels(state)}
  </aside>
</main>
${isLive ? helpDialog() : nothing}${isLive && state.writable ? actionDialog(view.wish) : nothing}`;
}

/** Nothing has been read yet: that there is no lock is not known. */
const isUnseen = ({ problem }: BoardState): boolean => problem !== null && problem.seen === null;

function topBar(view: View): Markup {
  const { connection } = view;
  const { instance, instances, label } = view.state;
  const link = (name: string) =>
    markup`<a href="${hrefOf(view, { instance: name, lock: '', holder: '' })}" aria-current="${name === instance ? 'page' : nothing}">${name}</a>`;
  return markup`
<header class="top">
  <h1><svg class="logo" viewBox="0 0 16 16" aria-hidden="true"><rect x="2" y="7" width="12" height="8" rx="2"></rect><path d="M5 7V5a3 3 0 0 1 6 0v2" fill="none" stroke-width="2"></path></svg>Locks</h1>
  ${instances.length > 1 ? markup`<nav aria-label="Instances" data-away>${instances.map(link)}</nav>` : nothing}
  <p class="seen">seen by <b>${onOneLine(label)}</b></p>
  ${
    connection === ''
      ? nothing
      : markup`<p id="live" role="status" class="is-${connection}"><span class="dot" aria-hidden="true"></span>${CONNECTIONS[connection]}</p>
  <div id="controls"><button id="theme" type="button" aria-label="Dark or light">◐</button><button id="help-button" type="button" aria-label="Keyboard help">?</button></div>`
  }
</header>`;
}

const problemText = ({ kind, since, seen, message }: BoardProblem): Markup =>
  markup`<b>${kind === 'slow' ? 'The store is slow' : 'The locks cannot be read'}</b>${
    kind === 'slow'
      ? `: the look that began at ${clockText(since)} is not over. `
      : ` since ${clockText(since)} ${zoneText(since)}. `
  }${seen === null ? 'Nothing has been seen yet. ' : `What is shown was seen at ${clockText(seen)} ${zoneText(seen)}. `}<span class="mono">${onOneLine(message)}</span>`;

/** What is unusual first, and the numbers in one line. */
function attention(view: View): Markup {
  const { state, at } = view;
  const alerts = attentionOf(state, at);
  const { held, waiting, waited, oldest, longest } = sumsOf(state.locks, at);
  const callers = countText(waiting, 'caller waits', 'callers wait');
  const facts = [
    `${countText(held, 'lock')}${state.more ? ' or more' : ''} held`,
    waiting === 0 ? 'no caller waits' : `${callers} for ${countText(waited, 'lock')}`,
    longest === undefined ? '' : `longest wait ${timeText(longest)}`,
    oldest === undefined ? '' : `oldest hold ${timeText(oldest)}`,
  ];
  const item = ({ name, tone, what, cure }: Alert) =>
    markup`<li class="${tone}"><p>${name === '' ? what : markup`<a href="${hrefOf(view, { lock: name })}">${what}</a>`}</p><p class="faint">${cure}</p></li>`;
  const more = alerts.length - MOST_ALERTS;
  const isCalm = alerts.length === 0;
  return markup`
<section id="attention" class="${isCalm ? 'is-calm' : ''}" aria-labelledby="attention-title">
  <h2 id="attention-title">${isCalm ? calmText(view) : `Needs attention: ${String(alerts.length)}`}</h2>
  ${isCalm ? nothing : markup`<ul>${alerts.slice(0, MOST_ALERTS).map(item)}</ul>`}
  ${more > 0 ? markup`<p class="faint">… and ${more} more</p>` : nothing}
  <p id="summary">${isUnseen(state) ? 'Not known yet' : facts.filter(Boolean).join(' · ')}</p>
</section>`;
}

function calmText(view: View): string {
  if (view.state.problem !== null || isOld(view)) return 'Not known now';
  return view.state.more ? 'Nothing unusual among the locks shown' : 'Nothing unusual';
}

function lockSection(view: View): Markup {
  const { state, ui, at, window, connection } = view;
  const entries = entriesOf(view);
  const wanted = wantedOf(view).length;
  const all = state.locks.length;
  const count = `${all.toLocaleString('en')}${state.more ? '+' : ''} ${all === 1 && !state.more ? 'lock' : 'locks'}`;
  const others = new URLSearchParams(queryOf({ ...ui, q: '', kind: '', state: '' }, state));
  const hidden = [...others].map(
    ([name, value]) => markup`<input type="hidden" name="${name}" value="${value}">`,
  );
  return markup`
<section id="locks" aria-label="Locks">
  <form id="toolbar" role="search">
    <input id="search" name="q" type="search" value="${ui.q}" placeholder="Search names and holders" aria-label="Search names and holders" autocomplete="off" spellcheck="false">
    ${select('state', 'State', ui.state, STATES)}${select('kind', 'Kind', ui.kind, { '': 'All kinds', ...KINDS })}
    ${connection === '' ? markup`${hidden}<button>Show</button>` : nothing}
    <p id="count" role="status">${wanted === all ? count : `${String(wanted)} of ${count}`}</p>
  </form>
  ${lockTable(entries, view)}
  <p id="foot">${footText(state, wanted, connection === '' ? entries.length - window.to : 0)}</p>
  ${connection === '' ? markup`<p id="still">As of ${clockText(at)} ${zoneText(at)}. Load the page again to see changes.</p>` : nothing}
</section>`;
}

const STATES = { '': 'All states', held: 'Held', waited: 'Waited for', fixed: 'Fixed lease' };

const select = (
  name: string,
  title: string,
  chosen: string,
  options: Readonly<Record<string, string>>,
): Markup =>
  markup`<select name="${name}" aria-label="${title}">${Object.entries(options).map(
    ([value, text]): Child => markup`<option value="${value}" ?selected=${value === chosen}>${text}</option>`,
  )}</select>`;

/** @param hidden the rows that only the script shows */
function footText(state: BoardState, wanted: number, hidden: number): string {
  if (isUnseen(state)) return 'Not known yet.';
  if (state.locks.length === 0) return 'No lock is held or waited for.';
  if (wanted === 0) return 'No lock is like that.';
  if (hidden > 0) return `There are ${String(hidden)} more rows.`;
  return state.more ? `The first ${countText(state.locks.length, 'lock')}. There are more.` : '';
}
