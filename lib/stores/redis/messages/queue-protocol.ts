import { type Asker, MAX_REASON } from '../../../api/asker.js';
import { keeperOf } from '../../../api/lock-state.js';
import type { QueueTerms, StoredLock } from '../../../store/lock-store.js';
import type { AskRequest, QueueMessage, Rivals } from '../../../store/queue-messages.js';
import type { ServerClocks } from '../commands/server-clock.js';
import { now } from '../../../runtime/clock.js';

/** The agreement of scripts and process: letters, channels, messages and replies. */

export const LETTERS = { exclusive: 'x', shared: 's' } as const;

/** An owner that holds no lock and waits for none. */
export const NOBODY = '-:0';

/** Followed by the client's id: each process gets the messages for all its entries and holds over one subscription. */
export const QUEUE_CHANNEL = 'lock_queue__channel:';

const clientOf = (owner: string): string => owner.slice(0, owner.lastIndexOf(':'));

/** The channel of the client of an owner. */
export const channelOf = (owner: string): string => QUEUE_CHANNEL + clientOf(owner);

const modeOf = (letter: string) => (letter === 's' ? 'shared' : 'exclusive');

/** The rivals, as queue.include.lua encodes them. */
export const rivalsOf = (code: number): Rivals => (['none', 'queued', 'outside'] as const)[code] ?? 'none';

/**
 * `granted <owner> <token> <server ms> <ms granted> <server> <rivals>`, `next <owner> <ms> <1 to subscribe to releases>`,
 * `lost <owner> forced <asker>` or `lost <owner> asked <request>`, both as JSON.
 *
 * A version that does not know requests takes one for a loss, asks the store, and finds that it holds the lock. So does
 * this version with a message that it cannot read: any user of the server may publish.
 */
export function queueMessage(text: string, clocks: ServerClocks): QueueMessage {
  const [type, owner = '', value, date, time, node = '', rivals = '0'] = text.split(' ');
  if (type === 'lost') return lossMessage(text, owner, value);
  if (type === 'next' && isWhole(value)) return { type, owner, within: Number(value), listen: date === '1' };
  if (type !== 'granted' || ![value, date, time].every(isWhole)) return { type: 'missed', owner };
  const grantedAt = clocks.of(node).momentOf(Number(date), now());
  const granted = { grantedAt, leaseTime: Number(time), rivals: rivalsOf(Number(rivals)) };
  return { type: 'granted', owner, fencingToken: Number(value), ...granted };
}

const isWhole = (text: string | undefined): boolean => text !== undefined && /^\d+$/.test(text);

export const forcedText = (owner: string, asker: Asker | undefined): string =>
  `lost ${owner}${asker === undefined ? '' : ` forced ${JSON.stringify(asker)}`}`;

export const askedText = ({ owner, id, name, by, reason }: AskRequest): string =>
  `lost ${owner} asked ${JSON.stringify({ id, name, by, reason })}`;

function lossMessage(text: string, owner: string, what = ''): QueueMessage {
  const { by, reason, id, name } = fieldsOf(text.slice(`lost ${owner} ${what} `.length));
  if (by === undefined || by.length > MAX_REASON) return { type: 'lost', owner };
  if (reason !== undefined && reason.length > MAX_REASON) return { type: 'lost', owner };
  if (what === 'forced') return { type: 'lost', owner, forced: { by, reason } };
  if (what !== 'asked' || id === undefined || name === undefined) return { type: 'lost', owner };
  return { type: 'asked', owner, id, name, by, reason };
}

function fieldsOf(json: string): Partial<Record<'by' | 'reason' | 'id' | 'name', string>> {
  if (json.length > LONGEST_REQUEST) return {};
  try {
    const { by, reason, id, name } = JSON.parse(json) as Record<string, unknown>;
    const texts = Object.entries({ by, reason, id, name }).filter(([, value]) => typeof value === 'string');
    return Object.fromEntries(texts);
  } catch {
    return {};
  }
}

/** Characters of the longest one: a name, a label and a reason, each character as an escape sequence. */
const LONGEST_REQUEST = 20_000;

/** What inspect.lua returns. */
export interface Inspected {
  readonly fence: string | null;
  readonly listeners: number;
  /** With the ms that are left; less than 0 without an end. */
  readonly holders: readonly [member: string, left: number][];
  /** With the arrival in microseconds. */
  readonly queue: readonly [entry: string, arrival: number][];
  /** The lock is of one of the kinds that may have several holders, each with a deadline. */
  readonly withHolders: boolean;
  /** The clients with entries in the queue that have no subscription. */
  readonly dead: readonly string[];
}

/** The client of an entry in a queue. */
export const waiterOf = (entry: string): string => clientOf(entry.split(' ')[1] ?? '');

export function storedLock(found: Inspected): StoredLock {
  const { fence, listeners, holders, queue, withHolders } = found;
  // A text that is no fence tells nothing.
  const [token, named, kind = ''] = fence !== null && /^\d+(?: |$)/.test(fence) ? fence.split(' ') : [];
  const fencedOwner = named?.split(';')[0];
  // If another library holds a plain lock, the first waiter of the queue subscribes to releases, and is counted already.
  const dead = new Set(found.dead);
  const [first] = holders;
  const [head] = queue;
  const isHeadAlive = head !== undefined && !dead.has(waiterOf(head[0]));
  const headListens = !withHolders && isHeadAlive && first?.[0] !== fencedOwner && listeners > 0;
  return {
    kind: withHolders ? (kind as QueueTerms['kind']) : 'lock',
    holders: holders.map(([member, left]) => {
      const owner = withHolders ? member.slice(1) : member;
      return {
        owner,
        mode: withHolders ? modeOf(member.charAt(0)) : 'exclusive',
        remainingTime: left < 0 ? Infinity : left,
        since: keeperOf(owner) === fencedOwner ? Math.floor(Number(token) / 1000) : undefined,
      };
    }),
    queue: queue.map(([entry, arrival]) => {
      const [letter = '', owner = ''] = entry.split(' ');
      const since = Math.floor(arrival / 1000);
      return { owner, mode: modeOf(letter), since, dead: dead.has(waiterOf(entry)) };
    }),
    fencingToken: token === undefined ? undefined : Number(token),
    listeners: headListens ? listeners - 1 : listeners,
  };
}
