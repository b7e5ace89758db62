import type { LockClient, StoredLock } from '../core/lock-client.js';

/**
 * The last token of a lock, as far as it is known. Hand-offs within this process have raised it without telling the store. The
 * nodes of a quorum may have greater tokens, which were given too late to count.
 */
export function lastTokenOf(
  client: LockClient,
  name: string,
  { kind, holders, fencingToken }: StoredLock,
): number | undefined {
  const own = client.lastToken(name);
  if (own === undefined) return fencingToken;
  const isOwn = kind === 'lock' && holders.some(({ owner }) => client.labels.isOwn(owner));
  return isOwn ? own : Math.max(own, fencingToken ?? 0);
}
