import { onOneLine } from '../../runtime/text.js';
import { RENEWED_SHARE, type BoardGroup, type BoardLock, type BoardState, type Times } from '../feed/wire.js';
import { groupBy } from '../group-by.js';
import { byWait, countText, sumsOf } from './entries.js';
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
/** The end of a lease is near, ms. */
const SOON = 30_000;
/** So many grants that pass a caller by in a long wait are unusual. */
const MANY = 5;

/** All that needs attention now, the gravest first. */
export function attentionOf(state: BoardState, at: number): Alert[] {
  const groups = new Map(state.groups.map((group) => [group.name, group]));
  // A deadlock says it all. Elections are held and waited for as long as a term lasts.
  const deadlocked = new Set(state.deadlocks.flatMap(({ cycle }) => cycle.map(({ name }) => name)));
  const unusual = state.locks
    .filter(({ name, kind }) => kind !== 'election' && !deadlocked.has(name))
    .sort(byWait)
    .flatMap((lock) => {
      const alert = lockAlert(lock, groups.get(lock.group), at);
      return alert === undefined ? [] : [{ ...alert, name: lock.name, group: lock.group }];
    });
  // The same of several locks of a group is told once.
  const told = [...groupBy(unusual, ({ sort, group }) => `${sort} ${group}`).values()].flatMap(
    ([first, ...more]) => {
      if (first === undefined || more.length === 0) return first ?? [];
      const suffix = countText(more.length, 'more lock is', 'more locks are');
      return { ...first, what: `${first.what} ${suffix} like it.` };
    },
  );
  const all = [...nodeAlerts(state), ...deadlockAlerts(state, at), ...told];
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
function lockAlert(
  lock: BoardLock,
  group: BoardGroup | undefined,
  at: number,
): (Omit<Alert, 'name'> & { readonly sort: string }) | undefined {
  const { holders, waiting, passed, kind } = lock;
  const title = onOneLine(lock.name);
  const { oldest: age, longest: wait } = sumsOf([lock], at);
  const isWaitLong = group?.wait ? isFar(wait, group.wait) : (wait ?? 0) >= LONG_WAIT;
  const [first] = holders;
  const holder = first && holders.length === 1 ? onOneLine(first.label) : countText(holders.length, 'holder');
  const waits = countText(waiting, 'caller waits', 'callers wait');
  const longest = wait === undefined ? '' : `${waiting > 1 ? ', the longest' : ''} for ${timeText(wait)}`;
  if (isFar(age, group?.hold))
    return {
      ...{ sort: 'held', tone: waiting > 0 ? 'bad' : 'note' },
      what: `${title} has been held by ${holder} for ${timeText(age ?? 0)}${usually(group?.hold)}.${waiting > 0 ? ` ${waits}${longest}.` : ''}`,
      cure: `See what ${holder} does. It can be asked for the lock; if it is taken away, its work may run twice.`,
    };
  if (isWaitLong && passed >= MANY)
    return {
      ...{ sort: 'starves', tone: 'bad' },
      what: `A caller starves: it has waited for ${title} for ${timeText(wait ?? 0)}${usually(group?.wait)}, and the lock went to others at least ${countText(passed, 'time')} meanwhile.`,
      cure:
        kind === 'fair'
          ? 'Its process may be frozen or cut off, or another program takes the lock and does not queue.'
          : 'A fair lock serves in the order of arrival. Or hold it for a shorter time.',
    };
  const ending = holders.find(({ fixed, since, until }) => {
    if (!fixed || until === null || since === null) return false;
    return until - at < Math.min(SOON, RENEWED_SHARE * (until - since));
  });
  if (ending !== undefined && waiting > 0)
    return {
      ...{ sort: 'ends', tone: 'note' },
      what: `The lease of ${onOneLine(ending.label)} on ${title} is not renewed and ends in ${timeText((ending.until ?? at) - at)}, and ${waits}.`,
      cure: 'If its work is not done by then, the next one runs beside it. Renew the lease, or extend it.',
    };
  if (!isWaitLong) return undefined;
  const held = `Held by ${holder}${age === undefined ? '' : ` for ${timeText(age)}`}`;
  return {
    ...{ sort: 'waits', tone: 'note' },
    what: `${waits} for ${title}${longest}${usually(group?.wait)}. ${first === undefined ? 'It has no holder now' : held}.`,
    cure: `See what ${first === undefined ? 'the first in the queue' : holder} does, or ask for the lock.`,
  };
}

const isFar = (time: number | undefined, times: Times | null | undefined): boolean =>
  time !== undefined && !!times && time >= Math.max(SHORT, FAR * times[1]);

const usually = (times: Times | null | undefined): string =>
  times ? `, usually ${shortText(times[0])}` : '';
