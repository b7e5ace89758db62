import type { LockClient, StoredLock } from '../../client/lock-client.js';
import { untilAborted } from '../../client/waiting/until-aborted.js';
import { assertName, signalOf } from '../../client/validation.js';
import { LockAbortedError } from '../../api/errors.js';
import type { AnswerOptions } from '../../api/options.js';
import type { LockState } from '../../api/lock-state.js';

/** Reads the state of one lock. Null when it has no holder and no waiter. */
export async function inspect(
  client: LockClient,
  name: string,
  options: AnswerOptions | undefined,
): Promise<LockState | null> {
  assertName(name);
  const signal = signalOf(options, 'inspect');
  if (signal?.aborted === true) throw new LockAbortedError(name, signal.reason);
  const stored = await untilAborted(client.store.inspect(name), signal, name);
  if (stored === null) return null;
  const { kind, holders, listeners } = stored;
  const places = livingOf(stored.queue);
  if (holders.length === 0 && places.length === 0) return null;
  const isPlain = kind === 'lock';
  const { labels } = client;
  const isLocal = (owner: string) => labels.isOwn(owner);
  const found = Promise.all([...holders, ...places].map(({ owner }) => labels.find(owner)));
  const labelled = await untilAborted(found, signal, name);
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
    fencingToken: lastTokenOf(client, stored, client.tenures.lastToken(name)),
    waiters: {
      local: client.callers.waitingFor(name),
      processes: isPlain ? listeners + places.length : listeners,
    },
    queue: places.map(({ owner, mode, since }, index) => ({
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
 * The queue without the entries of processes that the store takes for dead. They stay in the queue until their turn comes: if the
 * holder has died as well, until another caller asks for the lock.
 */
export const livingOf = (queue: StoredLock['queue']): StoredLock['queue'] =>
  queue.filter(({ dead }) => dead !== true);

/**
 * The last token of a lock, as far as it is known. Hand-offs within this process have raised it without telling the store. The
 * nodes of a quorum may have greater tokens, which were given too late to count.
 * @param own the last token that this process has of it
 */
export function lastTokenOf(
  { labels }: LockClient,
  { kind, holders, fencingToken }: StoredLock,
  own: number | undefined,
): number | undefined {
  if (own === undefined) return fencingToken;
  const isOwn = kind === 'lock' && holders.some(({ owner }) => labels.isOwn(owner));
  return isOwn ? own : Math.max(own, fencingToken ?? 0);
}
