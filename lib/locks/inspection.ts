import type { LockClient } from '../core/lock-client.js';
import { untilAborted } from '../core/until-aborted.js';
import { assertName, signalOf } from '../core/validation.js';
import { LockAbortedError } from '../lock.errors.js';
import type { AnswerOptions } from '../lock.options.js';
import type { LockState } from '../lock.state.js';
import { lastTokenOf } from './last-token.js';
import { livingOf } from './living-waiters.js';

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
