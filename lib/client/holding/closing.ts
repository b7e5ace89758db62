import { clearTimer } from '../../runtime/runtime.js';
import { now, type timerAt } from './deadline.js';
import type { LockClient } from '../lock-client.js';

/** The steps of a shutdown. */
export interface Closing {
  /** Resolves when the store has answered the releases that needed no wait. */
  readonly released: Promise<void>;
  /** Resolves when the stores are closed. */
  readonly closed: Promise<void>;
  /** Whether callbacks still run, for whose end the stores wait. */
  readonly isInUse: boolean;
}

/**
 * Closes clients together, because work under a lock of one client may need a lock of another. Only work under a lock
 * still gets locks. All locks without a running callback are released at once. The others are renewed until their
 * callbacks end, for one lease time at most, and then stay in the store until their leases end: no lock is released
 * under running work. The stores are closed when no callback needs a lock.
 */
export function closeTogether(clients: readonly LockClient[], setTimer: typeof timerAt): Closing {
  const until = now() + Math.max(0, ...clients.map(({ options }) => options.leaseTime));
  const releases: Promise<void>[] = [];
  const releaseUnused = (): boolean => {
    for (const client of clients) releases.push(client.releaseUnused());
    return clients.some(({ isInUse }) => isInUse) && now() < until;
  };
  let look = (): void => undefined;
  for (const client of clients)
    client.stop(() => {
      look();
    });
  const isInUse = releaseUnused();
  const released = Promise.all(releases).then(() => undefined);
  const unused = new Promise<void>((resolve) => {
    if (!isInUse) {
      resolve();
      return;
    }
    let timer: NodeJS.Timeout | undefined;
    let isDue = false;
    const lookNow = (): void => {
      isDue = false;
      clearTimer(timer);
      // A timer may fire a moment early, so each pass arms it again.
      if (releaseUnused()) timer = setTimer(until, lookNow);
      else resolve();
    };
    timer = setTimer(until, lookNow);
    // One pass serves all leases that end in this step.
    look = () => {
      if (isDue) return;
      isDue = true;
      void Promise.resolve().then(lookNow);
    };
  });
  const closed = unused.then(async () => {
    await Promise.all(releases);
    await Promise.all(clients.map((client) => client.end()));
  });
  return { released, closed, isInUse };
}
