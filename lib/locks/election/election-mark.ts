import type { LockClient } from '../../client/lock-client.js';
import { idleTimerAt, now } from '../../client/holding/deadline.js';
import { clearTimer } from '../../runtime/runtime.js';

/** How long the store keeps a mark that is not renewed, ms. */
const LIFE = 60_000;
/** A run that ends sooner leaves no mark: it is not worth a command. */
const FIRST = 1_000;

const noteOf = (name: string): string => `election:${name}`;

/**
 * Marks a lock in the store as that of an election while this process takes part: candidates wait for as long as a term lasts, and an
 * observer in another process would take that for a fault. No rule of an election depends on the mark, so a failure is ignored.
 * @returns a function that ends it
 */
export function markElection({ store, options }: LockClient, name: string): () => void {
  const mark = async (): Promise<void> => {
    timer = idleTimerAt(now() + LIFE / 2, () => void mark());
    // A store of the application may throw.
    await (async () => store.labels?.keep(noteOf(name), options.label, LIFE))().catch(() => undefined);
  };
  let timer = idleTimerAt(now() + FIRST, () => void mark());
  return () => {
    clearTimer(timer);
  };
}

/** Whether a process that takes part has marked the lock as that of an election. Never rejects. */
export async function isElection({ store }: LockClient, name: string): Promise<boolean> {
  const mark = await (async () => store.labels?.find(noteOf(name)))().catch(() => undefined);
  return mark !== undefined;
}
