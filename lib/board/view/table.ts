import { onOneLine } from '../../runtime/text.js';
import type { BoardHolder, BoardLock, Times } from '../feed/wire.js';
import {
  countText,
  groupOf,
  sinceOf,
  SORTS,
  sortOf,
  sumsOf,
  timeSince,
  type Entry,
  type Group,
} from './entries.js';
import { each, markup, nothing, type Child, type Markup } from './markup.js';
import { isoTime, shortText, timeText } from './times.js';
import { hrefOf, type View } from './ui.js';

export const KINDS: Readonly<Record<BoardLock['kind'], string>> = {
  lock: 'plain',
  fair: 'fair',
  'read-write': 'read-write',
  semaphore: 'semaphore',
  election: 'election',
};

export function lockTable(entries: readonly Entry[], view: View): Markup {
  const { from, to, rowHeight } = view.window;
  const shown = entries.slice(from, to);
  const rows = each(
    shown.map((entry, index) => ({ entry, index: from + index })),
    ({ entry }) => entry.key,
    ({ entry, index }) =>
      'group' in entry ? groupRow(entry.group, index, view) : lockRow(entry, index, view),
  );
  return markup`
<table role="table" aria-label="Locks that are held or waited for" aria-rowcount="${entries.length + 1}">
  <thead role="rowgroup"><tr role="row" aria-rowindex="1">
    ${head('name', view)}<th class="holder" scope="col" role="columnheader">Held by</th>${head('age', view)}
    <th class="lease" scope="col" role="columnheader">Lease</th>${head('wait', view)}
    <th class="token" scope="col" role="columnheader">Token</th>
  </tr></thead>
  ${spacer(from * rowHeight)}<tbody role="rowgroup" id="rows">${rows}</tbody>${spacer(Math.max(0, entries.length - to) * rowHeight)}
</table>`;
}

/** In place of the rows above, or below. */
const spacer = (height: number): Child =>
  height === 0
    ? nothing
    : markup`<tbody class="space" aria-hidden="true"><tr><td height="${height}"></td></tr></tbody>`;

function head(key: keyof typeof SORTS, view: View): Markup {
  const { ui } = view;
  const { by, isReversed } = sortOf(ui);
  const isSorted = by === key;
  const isUp = (key === 'name') !== isReversed;
  const href = hrefOf(view, { sort: isSorted && !isReversed ? `-${key}` : key === 'wait' ? '' : key });
  return markup`<th class="${key}" scope="col" role="columnheader" aria-sort="${
    isSorted ? (isUp ? 'ascending' : 'descending') : nothing
  }"><a class="sort" href="${href}">${SORTS[key]}</a></th>`;
}

/** Only one row can be reached by Tab if keys move between rows. */
const tabOf = (key: string, { active }: View) =>
  active === undefined ? nothing : active === key ? '0' : '-1';

function groupRow({ name, locks, isOpen }: Group, index: number, view: View): Markup {
  const { state, ui, at } = view;
  const { held, fixed, holders, oldest, longest, waiting } = sumsOf(locks, at);
  const times = groupOf(state, name);
  const [open, shut] = [ui.open, ui.shut].map((list) => list.filter((one) => one !== name)) as [
    string[],
    string[],
  ];
  const href = hrefOf(view, isOpen ? { open, shut: [...shut, name] } : { open: [...open, name], shut });
  return markup`
<tr class="entry group" role="row" aria-rowindex="${index + 2}">
  <th class="name" scope="row" role="rowheader"><a href="${href}" aria-expanded="${isOpen ? 'true' : 'false'}" title="${onOneLine(name)}" tabindex="${tabOf(`group ${name}`, view)}">${onOneLine(name)}</a>
    <span class="more">${countText(locks.length, 'lock')}${times?.rate ? `, ${times.rate.toLocaleString('en')} a minute` : ''}</span></th>
  <td class="holder" role="cell">${countText(held, 'lock')} held<span class="more">by ${countText(holders, 'process', 'processes')}</span></td>
  <td class="age" role="cell">${held > 0 ? time('longest ', oldest) : nothing}${usual(times?.hold, times?.isSeen)}</td>
  <td class="lease" role="cell">${fixed > 0 ? `${String(fixed)} fixed` : nothing}</td>
  <td class="wait" role="cell">${waiting > 0 ? markup`<b class="count">${waiting}</b>` : nothing}${time('', longest)}${usual(times?.wait)}</td>
  <td class="token" role="cell"></td>
</tr>`;
}

function lockRow(
  { key, lock, isInGroup }: Extract<Entry, { lock: BoardLock }>,
  index: number,
  view: View,
): Markup {
  const { state, ui, at } = view;
  const { name, kind, holders, waiting, waitingSince, token, group } = lock;
  const isHeld = holders.length > 0;
  const age = timeSince(sinceOf(lock), at);
  const times = isInGroup ? undefined : groupOf(state, group);
  const marks = [waiting > 0 && 'is-waited', isInGroup && 'is-inner', name === ui.lock && 'is-open'];
  const wait = waiting > 0 && waitingSince !== null ? at - waitingSince : undefined;
  return markup`
<tr class="${['entry lock', ...marks].filter(Boolean).join(' ')}" role="row" aria-rowindex="${index + 2}">
  <th class="name" scope="row" role="rowheader"><a href="${hrefOf(view, { lock: name })}" title="${onOneLine(name)}" tabindex="${tabOf(key, view)}">${onOneLine(name)}</a>
    <span class="more">${kind === 'election' ? markup`<span class="mark">election</span>` : KINDS[kind]}</span></th>
  <td class="holder" role="cell">${holderLinks(holders, tabOf(key, view), view)}</td>
  <td class="age" role="cell">${!isHeld ? nothing : age === undefined ? 'unknown' : time('', age)}${usual(times?.hold, times?.isSeen)}</td>
  <td class="lease" role="cell">${isHeld ? lease(holders, at) : nothing}</td>
  <td class="wait" role="cell">${waiting > 0 ? markup`<b class="count">${waiting}</b>` : nothing}${time('', wait)}${usual(times?.wait)}</td>
  <td class="token" role="cell">${token > 0 ? token : nothing}</td>
</tr>`;
}

function holderLinks([first, ...others]: readonly BoardHolder[], tab: Child, view: View): Child {
  if (first === undefined) return markup`<span class="none">no holder</span>`;
  const labels = [first, ...others].slice(0, 20).map(({ label }) => onOneLine(label));
  return markup`<a class="label" href="${hrefOf(view, { holder: first.label })}" title="${labels.join('\n')}" tabindex="${tab}">${labels[0] ?? ''}</a>${
    others.length > 0 ? markup`<span class="more">and ${others.length} more</span>` : nothing
  }`;
}

const time = (before: string, ms: number | undefined): Child =>
  ms === undefined ? nothing : markup`<time datetime="${isoTime(ms)}">${before}${timeText(ms)}</time>`;

const usual = (times: Times | null | undefined, isSeen = false): Child =>
  times
    ? markup`<span class="more" title="${isSeen ? 'p50 and p99 of the holds that were seen to end' : 'p50 and p99 of this process'}, the last minutes">${isSeen ? '≈ ' : ''}p50 ${shortText(times[0])}, p99 ${shortText(times[1])}</span>`
    : nothing;

/** The first lease that ends: a bar that runs out if nothing renews it. */
function lease(holders: readonly BoardHolder[], at: number): Child {
  const fixed = holders.filter((holder) => holder.fixed).sort((a, b) => (a.until ?? 0) - (b.until ?? 0))[0];
  if (fixed === undefined || fixed.until === null)
    return holders.every(({ until }) => until === null)
      ? 'no end'
      : markup`<span class="renewed">renewed</span>`;
  const left = Math.max(0, fixed.until - at);
  const whole = fixed.since === null ? (fixed.lease ?? left) : fixed.until - fixed.since;
  const share = whole <= 0 ? 0 : Math.min(100, Math.round((1_000 * left) / whole) / 10);
  return markup`<time datetime="${isoTime(left)}">ends in ${timeText(left)}</time><svg class="bar" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true"><rect class="whole" width="100" height="4"></rect><rect class="part" width="${share}" height="4"></rect></svg>`;
}
