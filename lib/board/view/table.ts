import { onOneLine } from '../../runtime/text.js';
import type { BoardHolder, BoardLock, Times } from '../feed/wire.js';
import { countText, groupOf, SORTS, sortOf, sumsOf, type Entry } from './entries.js';
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
    shown,
    ({ key }) => key,
    (entry, index) => row(entry, from + index, view),
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

/** A row of one lock, or of a group with the sums of its locks. */
function row({ key, name, locks, group, isOpen, isInGroup }: Entry, index: number, view: View): Markup {
  const { state, ui, at } = view;
  const { held, fixed, holders, oldest, longest, waiting } = sumsOf(locks, at);
  const [lock] = isOpen === undefined ? locks : [];
  const times = isInGroup ? undefined : groupOf(state, group);
  // Only one row can be reached by Tab if keys move between rows.
  const tab = view.active === undefined ? nothing : view.active === key ? '0' : '-1';
  const isSeen = times?.isSeen;
  const marks = [waiting > 0 && 'is-waited', isInGroup && 'is-inner', lock && name === ui.lock && 'is-open'];
  return markup`
<tr class="${['entry', ...(lock ? ['lock', ...marks] : ['group'])].filter(Boolean).join(' ')}" role="row" aria-rowindex="${index + 2}">
  <th class="name" scope="row" role="rowheader"><a href="${lock ? hrefOf(view, { lock: name }) : toggled(name, isOpen === true, view)}" aria-expanded="${isOpen === undefined ? nothing : String(isOpen)}" title="${onOneLine(name)}" tabindex="${tab}">${onOneLine(name)}</a>
    <span class="more">${lock ? kindOf(lock) : `${countText(locks.length, 'lock')}${times?.rate ? `, ${times.rate.toLocaleString('en')} a minute` : ''}`}</span></th>
  <td class="holder" role="cell">${lock ? holderLinks(lock.holders, tab, view) : markup`${countText(held, 'lock')} held<span class="more">by ${countText(holders, 'process', 'processes')}</span>`}</td>
  <td class="age" role="cell">${held === 0 ? nothing : oldest === undefined ? 'unknown' : time(lock ? '' : 'longest ', oldest)}${usual(times?.hold, isSeen)}</td>
  <td class="lease" role="cell">${lock ? lease(lock.holders, at) : fixed > 0 ? `${String(fixed)} fixed` : nothing}</td>
  <td class="wait" role="cell">${waiting > 0 ? markup`<b class="count">${waiting}</b>` : nothing}${time('', longest)}${usual(times?.wait)}</td>
  <td class="token" role="cell">${lock && lock.token > 0 ? lock.token : nothing}</td>
</tr>`;
}

const kindOf = ({ kind }: BoardLock): Child =>
  kind === 'election' ? markup`<span class="mark">election</span>` : KINDS[kind];

/** The address of the page with the group open, or shut. */
function toggled(group: string, isOpen: boolean, view: View): string {
  const without = (groups: readonly string[]) => groups.filter((one) => one !== group);
  const [open, shut] = [without(view.ui.open), without(view.ui.shut)];
  return hrefOf(view, isOpen ? { open, shut: [...shut, group] } : { open: [...open, group], shut });
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
  if (holders.length === 0) return nothing;
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
