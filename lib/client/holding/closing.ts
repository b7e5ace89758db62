import { clearTimer } from '../../runtime/runtime.js';
import { LockClosedError } from '../../api/errors.js';
import { lockOrder } from '../scope/order-graph.js';
import type { Scope } from '../scope/scope.js';
import { now, restAfter, type timerAt } from './deadline.js';
import { releasedError, type Tenure } from './tenure.js';
import type { LockClient } from '../lock-client.js';

/**
 * Time between two looks at the locks in use, ms. A callback may end without a lease that ends: it has released its lease, has lost
 * it, or runs under a lock of another service. Leases by hand that it has left are released by the next look.
 */
const LOOK = 1_000;

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
 * still gets locks. All locks without a running callback are released at once. The others are kept until their callbacks end,
 * for the longest lease time of them and of the clients at most, and then stay in the store until their leases end:
 * no lock is released under running work. Fixed leases are not renewed meanwhile. The stores are closed when no callback
 * needs a lock.
 * @param least ms for which they are kept at most, if all lease times are shorter
 */
export function closeTogether(clients: readonly LockClient[], setTimer: typeof timerAt, least = 0): Closing {
  const since = now();
  const releases: Promise<unknown>[] = [];
  let until = since + Math.max(least, ...clients.map(({ options }) => options.leaseTime));
  const releaseAll = (): boolean => {
    let isUsed = false;
    for (const client of clients) {
      for (const tenure of client.tenures.all) {
        // Announces a deadline that has passed. The loss of another one may have called code that has released this one.
        if (!tenure.held) continue;
        if (isInUse(tenure)) {
          isUsed = true;
          until = Math.max(until, since + tenure.longest);
        } else releases.push(release(client, tenure));
      }
    }
    return isUsed && now() < until;
  };
  let look = (): void => undefined;
  for (const client of clients) client.closesWith = clients;
  for (const client of clients)
    stop(client, () => {
      look();
    });
  const isUsed = releaseAll();
  const released = Promise.all(releases).then(() => undefined);
  const unused = new Promise<void>((resolve) => {
    if (!isUsed) {
      resolve();
      return;
    }
    let timer: NodeJS.Timeout | undefined;
    let isDue = false;
    let pause = 0;
    const lookNow = (): void => {
      isDue = false;
      clearTimer(timer);
      const begun = now();
      // A timer may fire a moment early, so each pass arms it again.
      if (releaseAll()) lookLater();
      else resolve();
      pause = restAfter(begun);
    };
    const lookLater = (): void => {
      timer = setTimer(Math.min(until, now() + LOOK), lookNow);
    };
    lookLater();
    // One pass serves all leases that end in this step, or within the pause: thousands of callbacks may end one by one.
    look = () => {
      if (isDue) return;
      isDue = true;
      if (pause < 1) {
        void Promise.resolve().then(lookNow);
        return;
      }
      clearTimer(timer);
      timer = setTimer(Math.min(until, now() + pause), lookNow);
    };
  });
  const closed = unused.then(async () => {
    await Promise.all(releases);
    await Promise.all(clients.map(end));
  });
  return { released, closed, isInUse: isUsed };
}

/** Grants no new lock and refuses the waiters, except for code that runs under a lock. */
function stop(client: LockClient, onLeft: () => void): void {
  if (client.state === 'open') client.state = 'closing';
  client.onLeft = onLeft;
  client.callers.sendAway(client.refuses);
}

/** Whether a callback runs under a lock, or is about to. */
const isInUse = ({ user }: Tenure): boolean => user === undefined || user.isInUse();

/** Whether a client, or another one that closes with it, ends after the code of this scope. Such code must not wait for that end. */
export const waitsFor = ({ closesWith }: LockClient, scope: Scope | undefined): boolean =>
  scope !== undefined &&
  closesWith.some(
    ({ id, tenures }) =>
      scope.near().some(({ clientId }) => clientId === id) ||
      tenures.all.some(({ user }) => user?.isInUse(scope)),
  );

/** Releases a lock under which no callback runs, and reports the loss to its holder. */
function release({ returns, events }: LockClient, tenure: Tenure): Promise<unknown> {
  const { user, name, owner, label } = tenure;
  const released = returns.giveBack(tenure);
  events.next({ type: 'lost', name, label, owner, reason: 'released' });
  user?.onLost(releasedError(tenure, new LockClosedError(name)));
  return released;
}

/** Ends the client: holders lose their locks, which stay in the store until their leases end. Closes the store. */
async function end(client: LockClient): Promise<void> {
  client.state = 'closed';
  client.callers.sendAway(client.refuses);
  for (const tenure of client.tenures.all) {
    if (!tenure.held) continue;
    if (tenure.user === undefined) {
      // Granted a moment ago: its caller is refused, and no work begins.
      void client.release(tenure);
      continue;
    }
    const { name, owner, label } = tenure;
    client.events.next({ type: 'lost', name, label, owner, reason: 'expired' });
    tenure.lose('expired', new LockClosedError(name));
  }
  await client.transfers?.settled();
  client.labels.close();
  client.deadlocks.close();
  lockOrder.forget(client.id);
  client.queueMessages.close();
  try {
    await client.releaser.close();
    await client.store.close();
  } finally {
    client.events.complete();
  }
}
