import type { QueueMessage, QueueTerms, StoredLock } from '../lock-store.js';
import type { ServerClocks } from './server-clock.js';

/** What the scripts and this side have agreed on: letters, channels, messages and replies. */

export const LETTERS = { exclusive: 'x', shared: 's' } as const;

/** Followed by the client's id: each process hears of all its places over one subscription. */
export const QUEUE_CHANNEL = 'lock_queue__channel:';

const modeOf = (letter: string) => (letter === 'x' ? 'exclusive' : 'shared');

/** What queue-acquire.lua returns. */
export type QueueReply = [
  outcome: number | string,
  date: number | string,
  node: string,
  value: number | string,
  arrival: number | string | undefined,
  holder: string | null | undefined,
];

/** `granted <owner> <token> <server ms> <server>` or `next <owner> <ms>`. */
export function queueMessage(text: string, clocks: ServerClocks): QueueMessage {
  const [type, owner = '', value, date, node = ''] = text.split(' ');
  if (type === 'next') return { type, owner, within: Number(value) };
  const grantedAt = clocks.of(node).momentOf(Number(date), performance.now());
  return { type: 'granted', owner, fencingToken: Number(value), grantedAt };
}

export type InspectReply = [
  fence: string | null,
  listeners: number | string,
  holders: (string | number)[],
  queue: string[],
  hasQueue: number | string,
];

export function storedLock([fence, listeners, holders, queue, hasQueue]: InspectReply): StoredLock {
  const [token, fencedOwner, kind = ''] = fence?.split(' ') ?? [];
  const queued = Number(hasQueue) === 1;
  return {
    kind: queued ? (kind as QueueTerms['kind']) : 'lock',
    holders: pairs(holders).map(([member, left]) => {
      const owner = queued ? member.slice(1) : member;
      return {
        owner,
        mode: queued ? modeOf(member.charAt(0)) : 'exclusive',
        remainingTime: left < 0 ? Infinity : left,
        since: owner === fencedOwner ? Math.floor(Number(token) / 1000) : undefined,
      };
    }),
    queue: pairs(queue).map(([entry, arrival]) => ({
      owner: entry.slice(2),
      mode: modeOf(entry.charAt(0)),
      since: Math.floor(arrival / 1000),
    })),
    fencingToken: token === undefined ? undefined : Number(token),
    listeners: Number(listeners),
  };
}

function pairs(flat: readonly (string | number)[]): [string, number][] {
  const result: [string, number][] = [];
  for (let n = 0; n + 1 < flat.length; n += 2) result.push([String(flat[n]), Number(flat[n + 1])]);
  return result;
}
