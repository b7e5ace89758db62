/**
 * The names under which one lock lives in Redis. All of them fall into one cluster slot, unless the name has a `}` and
 * no hash tag.
 */
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
}

/**
 * @param clientPrefix the `keyPrefix` of the ioredis client, which ioredis puts before every key by itself, but not
 * before a channel. Redisson sees the prefixed name, so the channel is made of that one.
 */
export function keysOf(name: string, keyPrefix: string, clientPrefix: string): LockKeys {
  const lock = keyPrefix + name;
  const stored = clientPrefix + lock;
  // Redisson's rule for the channel. It keeps the slot of a name that has a hash tag, and makes one for any other.
  const tagged = stored.includes('{') ? stored : `{${stored}}`;
  const hasTag = /^[^{]*\{[^}]+\}/.test(stored);
  const beside = hasTag || stored.includes('}') ? lock : `{${stored}}`;
  return {
    lock,
    fence: `${beside}:fence`,
    queue: `${beside}:queue`,
    turn: `${beside}:turn`,
    channel: `redisson_lock__channel:${tagged}`,
  };
}
