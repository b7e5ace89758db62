import type { LockHolder, LockWaiter } from '../../api/lock-state.js';
import { onOneLine } from '../../runtime/text.js';
import type { NodeHealth } from '../../store/store-health.js';
import type { BoardChange, BoardState } from '../feed/wire.js';
import { countText } from './entries.js';
import { each, markup, nothing, type Markup } from './markup.js';
import { KINDS } from './table.js';
import { clockText, timeText, zoneText } from './times.js';
import { hrefOf, type View } from './ui.js';

/** How many of a queue are shown. */
const MOST_WAITERS = 100;

/** The store, node by node, and the last changes. */
export const panels = ({ health, changes, at }: BoardState): Markup => markup`
<section id="health" class="panel" aria-labelledby="health-title"><h2 id="health-title">Store</h2>
  ${health === null ? markup`<p class="faint">Not known yet</p>` : markup`<ul class="nodes">${health.nodes.map(nodeItem)}</ul>`}
  ${(health?.warnings ?? []).map(({ code, node, message }) => markup`<p class="warning"><b>${node === '' ? code : `${code}, ${node}`}</b> ${onOneLine(message)}</p>`)}
</section>
<section id="changes" class="panel" aria-labelledby="changes-title"><h2 id="changes-title">Changes</h2>
  <p class="faint">Times in ${zoneText(at)}${changes.length === 0 ? '. Nothing has changed yet.' : ''}</p>
  <ul class="changes" tabindex="0" aria-label="The last changes">${each([...changes].reverse(), ({ id }) => id, changeItem)}</ul>
</section>`;

const nodeItem = (health: NodeHealth): Markup => {
  const { node, status, latency, error } = health;
  const notes = notesOf(health);
  return markup`<li>
  <span class="dot ${status}" aria-hidden="true"></span><span class="mono cut" title="${node}">${node}</span>
  <span class="state ${status}">${status}</span><span class="latency">${latency === undefined ? '' : `${latency.toFixed(1)} ms`}</span>
  ${notes === '' ? nothing : markup`<span class="faint">${notes}</span>`}
  ${error === undefined ? nothing : markup`<span class="error">${onOneLine(error)}</span>`}</li>`;
};

function notesOf(health: NodeHealth): string {
  const { version, role, replicas = [], subscriber, evictionPolicy, quarantine } = health;
  const behind = replicas.filter(({ online }) => !online).length;
  const notes = [
    ...[version, role, replicas.length > 0 && countText(replicas.length, 'replica')],
    ...[behind > 0 && `${String(behind)} not in step`, evictionPolicy !== 'noeviction' && evictionPolicy],
    ...[subscriber === false && 'no messages', (quarantine ?? 0) > 0 && 'in quarantine'],
  ];
  return notes.filter(Boolean).join(' · ');
}

const changeItem = ({ at, tone, type, name, text }: BoardChange): Markup => markup`<li class="${tone}">
  <time datetime="${new Date(at).toISOString()}" title="${clockText(at)} ${zoneText(at)}">${clockText(at)}</time>
  <p class="cut"><span class="what">${type}</span> <span class="mono" title="${onOneLine(name)}">${onOneLine(name)}</span></p>
  ${text === '' ? nothing : markup`<p class="faint" title="${onOneLine(text)}">${onOneLine(text)}</p>`}</li>`;

/** The lock that is looked at. */
export function detailPanel(view: View): Markup {
  const { state, ui, at } = view;
  const { answer, notice } = view.opened;
  const isLive = view.connection !== '';
  const lock = answer instanceof Error ? undefined : answer?.lock;
  const copy = (text: string, what: string) => (isLive ? copyButton(text, what) : nothing);
  /** The label of an instance, which leads to all that it holds and waits for, the owner, and the times. */
  const item = (one: LockHolder | LockWaiter) => {
    const { label, owner, mode, since } = one;
    const left = 'remainingTime' in one ? one.remainingTime : null;
    const times = [
      since && `for ${timeText(at - new Date(since).getTime())}`,
      left !== null && left !== Infinity && `${timeText(left)} left`,
    ];
    const id = label === undefined ? owner : `${owner.slice(0, 8)}…${/:\d+$/.exec(owner)?.[0] ?? ''}`;
    return markup`<li><span class="owner" title="${onOneLine(owner)}">${
      label === undefined
        ? nothing
        : markup`<a href="${hrefOf(view, { holder: label })}">${onOneLine(label)}</a> `
    }<span class="id">${onOneLine(id)}</span>${copy(owner, `the owner ${owner}`)}</span>
    ${mode === 'shared' ? markup`<span class="faint">shared</span>` : nothing}<span class="faint">${times.filter(Boolean).join(', ')}</span></li>`;
  };
  return markup`<section id="detail" aria-label="One lock" tabindex="-1">
  <header><h2 class="mono">${onOneLine(ui.lock)}</h2>${copy(ui.lock, 'the name')}<a class="close" href="${hrefOf(view, { lock: '' })}" aria-label="Close">×</a></header>
  <p class="warning" role="status">${answer instanceof Error ? `The lock cannot be read: ${answer.message}` : notice}</p>
  ${lock === null ? markup`<p class="faint">Free: it has no holder.</p>` : nothing}
  ${
    !lock
      ? nothing
      : markup`<p class="faint">${KINDS[lock.kind]} lock, fencing token ${lock.fencingToken ?? 'unknown'}${copy(String(lock.fencingToken ?? ''), 'the token')}</p>
  <h3>Held by</h3>
  ${lock.holders.length === 0 ? markup`<p class="faint">No holder.</p>` : markup`<ul class="holders">${lock.holders.map(item)}</ul>`}
  <h3>Queue</h3>
  ${lock.queue.length === 0 ? nothing : markup`<ol class="queue" tabindex="0" aria-label="Queue">${lock.queue.slice(0, MOST_WAITERS).map(item)}</ol>`}
  <p class="faint">${queueText(lock.queue.length, lock.kind === 'lock' ? lock.waiters.processes : 0)}</p>`
  }
  ${state.writable && isLive ? markup`<div class="buttons"><button type="button" data-action="ask">Ask for it…</button><button type="button" data-action="force" class="is-grave">Take it away…</button></div>` : nothing}
</section>`;
}

/** @param processes the number of processes that wait for the release of a plain lock, with a place in the queue or without */
function queueText(queued: number, processes: number): string {
  const listeners = Math.max(0, processes - queued);
  if (queued > MOST_WAITERS) return `… and ${String(queued - MOST_WAITERS)} more`;
  if (listeners > 0) return `${countText(listeners, 'process waits', 'processes wait')} for its release`;
  return queued === 0 ? 'Nothing waits.' : '';
}

const copyButton = (text: string, what: string): Markup =>
  markup`<button type="button" class="copy" data-copy="${text}" aria-label="Copy ${onOneLine(what)}" title="Copy ${onOneLine(what)}"><svg viewBox="0 0 16 16" aria-hidden="true"><rect x="2.5" y="5.5" width="8" height="8" rx="1.5"></rect><path d="M5.5 5V2.5h8v8H11"></path></svg></button>`;

/** All that one process holds and waits for: the rows of the table. */
export function holderPanel(view: View): Markup {
  const { state, ui } = view;
  const held = state.locks.filter(({ holders }) => holders.some(({ label }) => label === ui.holder)).length;
  const waited = state.locks.filter(({ waiters }) => waiters.includes(ui.holder));
  return markup`<section id="holder" class="panel" aria-label="One holder">
  <header><h2 class="mono">${onOneLine(ui.holder)}</h2><a class="close" href="${hrefOf(view, { holder: '' })}" aria-label="Show all holders">×</a></header>
  <p>Holds ${countText(held, 'lock')}, and waits for ${countText(waited.length, 'lock')}.</p>
  <ul>${waited.slice(0, MOST_WAITERS).map(({ name }) => markup`<li>waits for <a class="mono" href="${hrefOf(view, { lock: name })}">${onOneLine(name)}</a></li>`)}</ul>
</section>`;
}
