import type { LockClient, StoredLock } from '../core/lock-client.js';

/**
 * The last token of a lock, as far as it is known. Hand-offs within this process have raised it without telling the store. The
 * nodes of a quorum may have greater tokens, which were given too late to count.
 */
export function lastTokenOf(
  { labels }: LockClient,
  { kind, holders, fencingToken }: StoredLock,
  /** The last token that this process has of it. */
  own: number | undefined,
): number | undefined {
  if (own === undefined) return fencingToken;
  const isOwn = kind === 'lock' && holders.some(({ owner }) => labels.isOwn(owner));
  return isOwn ? own : Math.max(own, fencingToken ?? 0);
}
