import { hashTag, slotOf, slotOfTag } from './slots.js';

/**
 * How long the fence outlives the lock, ms. Tokens are the server's time, so the fence matters only while the clock
 * might step back; an hour covers more than any step seen, and names that are used once leave nothing for good.
 */
export const FENCE_TTL = 3_600_000;

/** The names under which one lock lives in Redis. All keys of a lock fall into one cluster slot. */
export interface LockKeys {
  /** The hash that Redisson's RLock uses too. */
  readonly lock: string;
  readonly fence: string;
  /** Who waits, for the kinds with a queue. */
  readonly queue: string;
  /** Who comes next among those who want several locks at once. */
  readonly turn: string;
  /** Redisson's channel for the same name. */
  readonly channel: string;
  /** The channel for sharded messages: Redisson's, unless that one would fall into another slot than the lock. */
  readonly shardChannel: string;
}

/**
 * @param clientPrefix the `keyPrefix` of the ioredis client, which ioredis puts before every key by itself, but not
 * before a channel. Redisson sees the prefixed name, so the channel is made of that one.
 */
export function keysOf(name: string, keyPrefix: string, clientPrefix: string): LockKeys {
  const lock = keyPrefix + name;
  const stored = clientPrefix + lock;
  const tagged = hashTag(stored) !== undefined;
  const beside = tagged ? lock : inSlotOf(stored, clientPrefix);
  // Redisson's rule for the channel. It keeps the slot of a name that has a hash tag, and makes one for any other.
  const channel = `redisson_lock__channel:${stored.includes('{') ? stored : `{${stored}}`}`;
  return {
    lock,
    fence: `${beside}:fence`,
    queue: `${beside}:queue`,
    turn: `${beside}:turn`,
    channel,
    // An open brace that is never closed, or the reverse, and Redisson's own channel would be elsewhere.
    shardChannel: tagged || !/[{}]/.test(stored) ? channel : `redisson_lock__channel:${inSlotOf(stored, '')}`,
  };
}

/** A key that belongs to one without a hash tag, and lies in its slot once `prefix` has been put before it. */
function inSlotOf(stored: string, prefix: string): string {
  // The whole key is what the server hashes, so as a tag it leads to the same slot; a tag cannot hold a closing brace.
  if (!stored.includes('}') && !prefix.includes('{')) return `{${stored}}`;
  return `{${String(tagFor(slotOf(stored), prefix))}}${stored}`;
}

/** Found tags, by prefix and slot. */
const tags = new Map<string, number>();

/** The first number that leads to the slot as a tag. One in 16,384 does, so it is looked for once. */
function tagFor(slot: number, prefix: string): number {
  const wanted = `${prefix} ${String(slot)}`;
  let tag = tags.get(wanted);
  if (tag === undefined) {
    tag = 0;
    const begin = hashTag(`${prefix}{0}`)?.slice(0, -1) ?? '';
    while (slotOfTag(begin + String(tag)) !== slot) tag++;
    tags.set(wanted, tag);
  }
  return tag;
}
