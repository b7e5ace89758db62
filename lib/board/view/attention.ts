import { onOneLine } from '../../runtime/text.js';
import { RENEWED_SHARE, type BoardGroup, type BoardLock, type BoardState, type Times } from '../feed/wire.js';
import { countText, sinceOf, timeSince, waitOf } from './entries.js';
import { shortText, timeText } from './times.js';

/** Something unusual, in words, and what can be done. */
export interface Alert {
  /** The lock; empty if it is about none. */
  readonly name: string;
  readonly tone: 'bad' | 'note';
  readonly what: string;
  readonly cure: string;
}

/** A time below this is never unusual, ms. */
const SHORT = 5_000;
/** A time so many times as long as the p99 of its group is unusual. Callers of one process may pass a hold on 16 times. */
const FAR = 20;
/** A wait of so many ms is unusual in a group of which nothing is known. */
const LONG_WAIT = 10_000;
/** …and one of so many ms is that of a candidate, whose election only its own process knows as such. */
const CANDIDATE = 3_600_000;
/** The end of a lease is near, ms. */
const SOON = 30_000;
/** So many grants that pass a caller by in a long wait are unusual. */
const MANY = 5;

/** All that needs attention now, the gravest first. */
export function attentionOf(state: BoardState, at: number): Alert[] {
  const groups = new Map(state.groups.map((group) => [group.name, group]));
  // Elections are held for long, and a deadlock says it all.
  const others = new Set([
    ...state.elections,
    ...state.deadlocks.flatMap(({ cycle }) => cycle.map(({ name }) => name)),
  ]);
  const told = new Map<string, { alert: Alert; more: number }>();
  const locks = state.locks.filter(({ name }) => !others.has(name));
  for (const lock of locks.sort((a, b) => waitOf(a) - waitOf(b) || sinceOf(a) - sinceOf(b))) {
    const [what = '', alert] = lockAlert(lock, groups.get(lock.group), at) ?? [];
    if (alert === undefined) continue;
    // The same of several locks of a group is told once.
    const like = told.get(`${what} ${lock.group}`);
    if (like === undefined) told.set(`${what} ${lock.group}`, { alert, more: 0 });
    else like.more++;
  }
  const withMore = ({ alert, more }: { alert: Alert; more: number }) => {
    const suffix = ` ${countText(more, 'more lock is', 'more locks are')} like it.`;
    return more === 0 ? alert : { ...alert, what: alert.what + suffix };
  };
  const all = [...nodeAlerts(state), ...deadlockAlerts(state, at), ...[...told.values()].map(withMore)];
  return all.sort((a, b) => Number(a.tone === 'note') - Number(b.tone === 'note'));
}

function nodeAlerts({ health }: BoardState): Alert[] {
  const nodes = health?.nodes ?? [];
  const others = nodes.filter(({ status }) => status === 'up').length;
  const cure =
    health?.status === 'down'
      ? 'No lock can be taken or renewed, and all leases run out: bring it back.'
      : others === 0
        ? 'Locks are kept, but something is missing.'
        : `${countText(others, 'node goes', 'nodes go')} on, of ${String(nodes.length)}: bring it back before another one fails.`;
  return nodes
    .filter(({ status }) => status !== 'up')
    .map(({ node, status, error }) => ({
      ...{ name: '', tone: status === 'down' ? 'bad' : 'note', cure },
      what: `The ${node === 'store' ? node : `node ${node}`} is ${status === 'down' ? 'away' : 'degraded'}${error === undefined ? '' : `: ${onOneLine(error)}`}.`,
    }));
}

/** Each member holds the lock that the one before it waits for. */
const deadlockAlerts = ({ deadlocks }: BoardState, at: number): Alert[] =>
  deadlocks.map(({ cycle, at: since }) => {
    const members = cycle.map(({ name, process }, index) => {
      const held = onOneLine(cycle.at(index - 1)?.name ?? '');
      return `${onOneLine(process)} holds ${held} and waits for ${onOneLine(name)}`;
    });
    return {
      ...{ name: cycle[0]?.name ?? '', tone: 'bad' },
      what: `Deadlock for ${timeText(at - since)}: ${members.join('; ')}.`,
      cure: 'It lasts until a wait times out, or until one of the locks is taken away. Take the locks in one order, or as one multi-lock.',
    };
  });

/** The gravest alert about a lock, and its sort. Undefined if the lock is as usual. */
function lockAlert(lock: BoardLock, group: BoardGroup | undefined, at: number): [string, Alert] | undefined {
  const { name, holders, waiting, passed, kind } = lock;
  const title = onOneLine(name);
  const age = timeSince(sinceOf(lock), at);
  const wait = timeSince(waitOf(lock), at);
  const isWaitLong = group?.wait
    ? isFar(wait, group.wait)
    : wait !== undefined && wait >= LONG_WAIT && wait < CANDIDATE;
  const [first] = holders;
  const holder = first && holders.length === 1 ? onOneLine(first.label) : countText(holders.length, 'holder');
  const waits = countText(waiting, 'caller waits', 'callers wait');
  const longest = wait === undefined ? '' : `${waiting > 1 ? ', the longest' : ''} for ${timeText(wait)}`;
  const alert = (sort: string, tone: Alert['tone'], what: string, cure: string): [string, Alert] => [
    sort,
    { name, tone, what, cure },
  ];
  if (isFar(age, group?.hold))
    return alert(
      ...(['held', waiting > 0 ? 'bad' : 'note'] as const),
      `${title} has been held by ${holder} for ${timeText(age ?? 0)}${usually(group?.hold)}.${waiting > 0 ? ` ${waits}${longest}.` : ''}`,
      `See what ${holder} does. It can be asked for the lock; if it is taken away, its work may run twice.`,
    );
  if (isWaitLong && passed >= MANY)
    return alert(
      ...(['starves', 'bad'] as const),
      `A caller starves: it has waited for ${title} for ${timeText(wait ?? 0)}${usually(group?.wait)}, and the lock went to others at least ${countText(passed, 'time')} meanwhile.`,
      kind === 'fair'
        ? 'Its process may be frozen or cut off, or another program takes the lock and does not queue.'
        : 'A fair lock serves in the order of arrival. Or hold it for a shorter time.',
    );
  const ending = holders.find(({ fixed, since, until }) => {
    if (!fixed || until === null || since === null) return false;
    return until - at < Math.min(SOON, RENEWED_SHARE * (until - since));
  });
  if (ending !== undefined && waiting > 0)
    return alert(
      ...(['ends', 'note'] as const),
      `The lease of ${onOneLine(ending.label)} on ${title} is not renewed and ends in ${timeText((ending.until ?? at) - at)}, and ${waits}.`,
      'If its work is not done by then, the next one runs beside it. Renew the lease, or extend it.',
    );
  if (isWaitLong)
    return alert(
      ...(['waits', 'note'] as const),
      `${waits} for ${title}${longest}${usually(group?.wait)}. ${first === undefined ? 'It has no holder now' : `Held by ${holder}${age === undefined ? '' : ` for ${timeText(age)}`}`}.`,
      `See what ${first === undefined ? 'the first in the queue' : holder} does, or ask for the lock.`,
    );
  return undefined;
}

const isFar = (time: number | undefined, times: Times | null | undefined): boolean =>
  time !== undefined && !!times && time >= Math.max(SHORT, FAR * times[1]);

const usually = (times: Times | null | undefined): string =>
  times ? `, usually ${shortText(times[0])}` : '';
