import { RESERVED } from '../../../store/lock-store.js';
import { hashTag, keyInSlot, slotOf } from '../connection/slots.js';

/**
 * How long the fence outlives the lock, ms. Tokens are the server's time, so the fence matters only while the clock might
 * step back. An hour covers more than any step seen, and names that are used once leave nothing for good.
 */
export const FENCE_TTL = 3_600_000;

/**
 * The names under which one lock lives in Redis. The lock's own key is client prefix + keyPrefix + name. The rule for every
 * other key: the lock's own key, then RESERVED, then its purpose, then the text that keeps it in the lock's slot.
 *
 * No name and no prefix contains RESERVED, and no prefix ends in a part of it. So a derived key is never a lock's own key.
 * RESERVED does not overlap itself. So the text before its first occurrence is the key of the lock that a derived key
 * belongs to, and two locks never share a derived key. The rule sees prefixes and name as one text: two services that divide
 * one key differently between the prefixes share the derived keys as they share the lock. A user that may touch only keys
 * with the prefix may touch the derived keys too.
 */
export class LockKeys {
  /** The hash that Redisson's RLock uses too. */
  readonly lock: string;
  /** The lock's key as the server sees it. */
  private readonly stored: string;
  private slot: number | undefined;
  private madeFence: string | undefined;
  private madeQueue: string | undefined;
  private madeChannel: string | undefined;

  /**
   * @param keyPrefix the prefix of the module
   * @param clientPrefix the `keyPrefix` of the ioredis client, which ioredis puts before every key by itself, but not before
   * a channel. Redisson sees the prefixed name, so the channel is made of the prefixed name.
   */
  constructor(
    name: string,
    private readonly keyPrefix: string,
    private readonly clientPrefix: string,
  ) {
    this.lock = keyPrefix + name;
    this.stored = clientPrefix + this.lock;
  }

  isOf(keyPrefix: string, clientPrefix: string): boolean {
    return this.keyPrefix === keyPrefix && this.clientPrefix === clientPrefix;
  }

  // No command needs all of them, so each is made when it is asked for.

  get fence(): string {
    return (this.madeFence ??= this.derived('fence'));
  }

  /** The waiters. */
  get queue(): string {
    return (this.madeQueue ??= this.derived('queue'));
  }

  /** When the work of the lock was last done. */
  get done(): string {
    return this.derived('done');
  }

  /** The keys of the scripts with a queue. */
  get queued(): string[] {
    return [this.lock, this.fence, this.queue];
  }

  /** Redisson's channel for the same name: it keeps the slot of a name with a hash tag, and makes a tag of any other. */
  get channel(): string {
    return (this.madeChannel ??= CHANNEL + (this.stored.includes('{') ? this.stored : `{${this.stored}}`));
  }

  /** The channel for sharded messages: Redisson's, unless that one would fall into another slot than the lock. */
  get shardChannel(): string {
    const { stored } = this;
    // It would if an open brace is never closed, or the reverse.
    if (hashTag(stored) !== undefined || !/[{}]/.test(stored)) return this.channel;
    return keyInSlot(CHANNEL + stored, slotOf(stored));
  }

  private derived(role: 'fence' | 'queue' | 'done'): string {
    const key = keyInSlot(this.stored + RESERVED + role, (this.slot ??= slotOf(this.stored)));
    return key.slice(this.clientPrefix.length);
  }
}

const CHANNEL = 'redisson_lock__channel:';

/** For so many locks. A process that holds ten thousand asks for few of them at a time. */
const MOST_KEPT = 256;
const kept = new Map<string, LockKeys>();

/**
 * The keys that were made last are kept. A lock is given up soon after it is taken, many callers want the same lock, and the
 * nodes of a quorum are asked for one lock in a row.
 */
export function keysOfLock(name: string, keyPrefix: string, clientPrefix: string): LockKeys {
  const found = kept.get(name);
  if (found?.isOf(keyPrefix, clientPrefix) === true) return found;
  if (kept.size >= MOST_KEPT) kept.clear();
  const made = new LockKeys(name, keyPrefix, clientPrefix);
  kept.set(name, made);
  return made;
}

/** The key of a client's note for other processes. It belongs to the whole store, and to no lock. */
export const clientKeyOf = (keyPrefix: string, role: 'label' | 'waits', client: string): string =>
  `${keyPrefix}${RESERVED}${role}:${client}`;
