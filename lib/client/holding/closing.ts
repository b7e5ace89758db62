import { clearTimer } from '../../runtime/runtime.js';
import { now, type timerAt } from './deadline.js';
import type { LockClient } from '../lock-client.js';

/** How clients end. */
export interface Closing {
  /** The releases that needed no wait have their answers. */
  readonly released: Promise<void>;
  /** The stores are closed. */
  readonly closed: Promise<void>;
  /** Callbacks run, and the stores wait for their end. */
  readonly isInUse: boolean;
}

/**
 * Ends clients together: work under a lock of one client may need a lock of another one. From now on only such work gets
 * locks. A lock whose callback runs is never released under the work: it is renewed until the callback ends, for a lease time
 * at most, and is then left to its own end in the store. All other locks are released at once. The stores are closed when
 * no lock is left that a callback needs.
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
      // A timer may fire a moment early, so each look arms it again.
      if (releaseUnused()) timer = setTimer(until, lookNow);
      else resolve();
    };
    timer = setTimer(until, lookNow);
    // The lease that has ended may be one of many that end in this step.
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
