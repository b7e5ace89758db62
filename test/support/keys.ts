import type { Redis } from 'ioredis';
import { LockKeys } from '../../lib/stores/redis/commands/keys.js';

export { clientKeyOf } from '../../lib/stores/redis/commands/keys.js';
export { QUEUE_CHANNEL } from '../../lib/stores/redis/messages/queue-protocol.js';
export { slotOf } from '../../lib/stores/redis/connection/slots.js';

/** The keys beside a lock, by the key of the lock itself. */
export const keysBeside = (lock: string): LockKeys => new LockKeys(lock, '', '');

export const fenceOf = (lock: string): string => keysBeside(lock).fence;

export const queueOf = (lock: string): string => keysBeside(lock).queue;

/** Of a key as a server lists it: what it is for; undefined for a lock's own. */
export const roleOf = (key: string): string | undefined => /~ndl:([a-z]+)/.exec(key)?.[1];

export const isFence = (key: string): boolean => roleOf(key) === 'fence';

/** May stay for a while when every lock is free, and ends by itself: a fence, or what a process tells others, or a note of work that is done. */
export const mayStay = (key: string): boolean =>
  staysForever(key) || isFence(key) || ['label', 'waits', 'done'].includes(roleOf(key) ?? '');

/** Has no end: what the node of a quorum remembers of it. */
export const staysForever = (key: string): boolean => key === '~ndl:quorum';

/** The keys of the locks that a server has, without what lies beside them. */
export async function lockKeys(redis: Redis, pattern = 'lock:*'): Promise<string[]> {
  return (await redis.keys(pattern)).filter((key) => roleOf(key) === undefined);
}
