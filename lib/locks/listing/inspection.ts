import type { LockClient, StoredLock } from '../../client/lock-client.js';
import { answerWithin } from '../../client/waiting/answer-within.js';
import { assertName, signalOf } from '../../client/validation.js';
import { LockAbortedError } from '../../api/errors.js';
import type { AnswerOptions } from '../../api/options.js';
import type { LockState } from '../../api/lock-state.js';

/** Reads the state of one lock. Null if it has no holder and no waiter. */
export async function inspect(
  client: LockClient,
  name: string,
  options: AnswerOptions | undefined,
): Promise<LockState | null> {
  assertName(name);
  const signal = signalOf(options, 'inspect');
  if (signal?.aborted === true) throw new LockAbortedError(name, signal.reason);
  const stored = await answerWithin(client.store.inspect(name), name, { signal });
  const living = livingPart(client, name, stored);
  if (living === undefined) return null;
  const { kind, holders, listeners, queue, fencingToken } = living;
  const isPlain = kind === 'lock';
  const { labels } = client;
  const isLocal = (owner: string) => labels.isOwn(owner);
  const found = Promise.all([...holders, ...queue].map(({ owner }) => labels.find(owner)));
  const labelled = await answerWithin(found, name, { signal });
  return {
    name,
    kind,
    holders: holders.map(({ owner, since, ...hold }, index) => ({
      ...hold,
      owner,
      label: labelled[index],
      local: isLocal(owner),
      since: since === undefined ? undefined : new Date(since),
    })),
    remainingTime: Math.max(0, ...holders.map((holder) => holder.remainingTime)),
    fencingToken,
    waiters: {
      local: client.callers.waitingFor(name),
      processes: isPlain ? listeners + queue.length : listeners,
    },
    queue: queue.map(({ owner, mode, since }, index) => ({
      position: index + 1,
      owner,
      label: labelled[holders.length + index],
      local: isLocal(owner),
      mode,
      since: new Date(since),
    })),
  };
}

/**
 * A lock without the entries of processes that the store considers dead. Such an entry stays in the queue until its turn,
 * or, if the holder has died too, until another caller asks for the lock.
 * @returns undefined if the lock has no holder and no waiter
 */
export function livingPart(
  client: LockClient,
  name: string,
  stored: StoredLock | null,
): StoredLock | undefined {
  if (stored === null) return undefined;
  const queue = stored.queue.filter(({ dead }) => dead !== true);
  if (stored.holders.length === 0 && queue.length === 0) return undefined;
  return { ...stored, queue, fencingToken: lastTokenOf(client, name, stored) };
}

/**
 * The last known token of a lock. Hand-offs within this process increase the token without a message to the store.
 * Nodes of a quorum may have greater tokens, whose grants came too late to count.
 */
function lastTokenOf(
  { labels, tenures }: LockClient,
  name: string,
  { kind, holders, fencingToken }: StoredLock,
): number | undefined {
  const own = tenures.lastToken(name);
  if (own === undefined) return fencingToken;
  const isOwn = kind === 'lock' && holders.some(({ owner }) => labels.isOwn(owner));
  return isOwn ? own : Math.max(own, fencingToken ?? 0);
}
