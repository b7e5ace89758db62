import type { AcquireOptions, Lock, LockService } from '../../lib/index.js';
import * as scripts from '../support/scripts.js';
import type { HoldRecord } from '../support/worker.js';
import type { Stage, WorldProcess } from './index.js';

/** Takes a lock, keeps it for a time and releases it. Moments are those of the world. */
export async function holdFor(
  { now, pass }: Stage,
  lock: Lock,
  options: AcquireOptions = {},
  time = 0,
): Promise<HoldRecord & { readonly owner: string }> {
  const invoked = now();
  const lease = await lock.acquire(options);
  const granted = now();
  await pass(time);
  const [released, lost] = [now(), !lease.held];
  await lease.release();
  return { invoked, granted, released, fencingToken: lease.fencingToken, lost, owner: lease.owner };
}

/** So many callers for each lock, all at once. */
export const race = async (
  stage: Stage,
  locks: readonly Lock[],
  each: number,
  options: AcquireOptions,
  time: number,
): Promise<HoldRecord[]> =>
  Promise.all(
    locks.flatMap((lock) => Array.from({ length: each }, () => holdFor(stage, lock, options, time))),
  );

/** How many wait in the queue of a lock, as another process sees it. */
export const queueLength = async (observer: LockService, name: string): Promise<number> =>
  (await observer.inspect(name))?.queue.length ?? 0;

/** Lets the server know all scripts, whose first use costs one more command otherwise. */
export async function loadScripts(by: WorldProcess): Promise<void> {
  const redis = by.redis();
  for (const { source } of Object.values(scripts)) await redis.script('LOAD', source);
  redis.disconnect();
}
