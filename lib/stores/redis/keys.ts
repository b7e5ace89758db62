import { RESERVED } from '../lock-store.js';
import { hashTag, keyInSlot, slotOf } from './slots.js';

/**
 * How long the fence outlives the lock, ms. Tokens are the server's time, so the fence matters only while the clock
 * might step back; an hour covers more than any step seen, and names that are used once leave nothing for good.
 */
export const FENCE_TTL = 3_600_000;

/**
 * The names under which one lock lives in Redis. The lock's own key is client prefix + keyPrefix + name. The rule for
 * every other key: the lock's own key, then RESERVED, then what it is for, then what keeps it in the lock's slot.
 *
 * No name and no prefix contains RESERVED, and no prefix ends in a part of it. So a derived key is never a lock's own.
 * RESERVED does not overlap itself, so what stands before its first occurrence is the key of the lock that a derived
 * key belongs to, and two locks never share one. The rule sees prefixes and name in a row: two services that divide
 * one key differently between the prefixes share the derived keys as they share the lock. And a user who may touch
 * only what begins with the prefix may touch these.
 */
export class LockKeys {
  /** The hash that Redisson's RLock uses too. */
  readonly lock: string;
  /** What the server sees of it. */
  private readonly stored: string;
  private slot: number | undefined;

  /**
   * @param keyPrefix the module's
   * @param clientPrefix the `keyPrefix` of the ioredis client, which ioredis puts before every key by itself, but not
   * before a channel. Redisson sees the prefixed name, so the channel is made of that one.
   */
  constructor(
    name: string,
    keyPrefix: string,
    private readonly clientPrefix: string,
  ) {
    this.lock = keyPrefix + name;
    this.stored = clientPrefix + this.lock;
  }

  // No command needs all of them, so each is made when it is asked for.

  get fence(): string {
    return this.beside('fence');
  }

  /** Who waits. */
  get queue(): string {
    return this.beside('queue');
  }

  /** What the scripts with a queue touch. */
  get queued(): string[] {
    return [this.lock, this.fence, this.queue];
  }

  /** Redisson's channel for the same name. It keeps the slot of a name with a hash tag, and makes one for any other. */
  get channel(): string {
    return CHANNEL + (this.stored.includes('{') ? this.stored : `{${this.stored}}`);
  }

  /** The channel for sharded messages: Redisson's, unless that one would fall into another slot than the lock. */
  get shardChannel(): string {
    const { stored } = this;
    // An open brace that is never closed, or the reverse, and it would.
    if (hashTag(stored) !== undefined || !/[{}]/.test(stored)) return this.channel;
    return keyInSlot(CHANNEL + stored, slotOf(stored));
  }

  private beside(role: 'fence' | 'queue'): string {
    const key = keyInSlot(this.stored + RESERVED + role, (this.slot ??= slotOf(this.stored)));
    return key.slice(this.clientPrefix.length);
  }
}

const CHANNEL = 'redisson_lock__channel:';

/** Where a node of a quorum is noted: by the same rule, and for what no lock has a key for. */
export const noteKeyOf = (keyPrefix: string): string => `${keyPrefix}${RESERVED}quorum`;
