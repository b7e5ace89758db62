import { LockClosedError } from '../../api/errors.js';
import { isWorthAnotherTry } from '../../store/another-try.js';
import { now, timerAt } from '../holding/deadline.js';
import type { Tenure } from '../holding/tenure.js';
import type { LockClient } from '../lock-client.js';
import { answerWithin } from './answer-within.js';
import { answerOf } from './request.js';
import { type Busy, isRefusal, refusedWith, type WaitRequest } from './waiting.js';

/** The caller of a request under way. */
export interface GroupCaller {
  readonly names: readonly string[];
  /** The begin of its wait; undefined if it only asks. */
  readonly since: number | undefined;
  sendAway(refused: (request: WaitRequest) => boolean): void;
}

/**
 * Takes several plain locks of one location, all or none. A busy lock is an answer, and is not waited for; see Attempt.
 * The wait time bounds the time without an answer of the store. Each command has a new owner, because the release of a
 * command without an answer may arrive late.
 * @returns the tenures, in the order of the names
 * @throws LockUnavailableError, LockAbortedError, LockClosedError, LockKindMismatchError
 */
export async function requestAll(
  client: LockClient,
  names: readonly string[],
  request: WaitRequest,
  isSecondTry = false,
): Promise<readonly Tenure[] | Busy> {
  const { waitTime, signal, trace } = request;
  const name = names.join(',');
  const [owner, leaseTime, grantedAt] = [client.nextOwner(), client.initialLease(request.terms), now()];
  const { queue } = client.plainTerms;
  const giveUp = (insist: boolean): void => {
    const until = now() + leaseTime;
    for (const each of names)
      void client.releaser.release({ name: each, owner, leaseTime, queue }, until, { insist });
  };
  trace?.asked(1, 1);
  const asked = answerOf({ name, leaseTime }, grantedAt, () =>
    client.store.acquireAll({ names, owner, leaseTime }),
  );
  // The store may have carried out the command, or may do so later.
  void asked.then((reply) => {
    if (reply instanceof Error && !isRefusal(reply)) giveUp(true);
  });
  const { groups } = client.callers;
  let isGone = false as boolean;
  // A client that closes waits for the releases that have begun by then, and the caller is told after that.
  const leave = (): void => {
    if (!isGone) giveUp(false);
    isGone = true;
  };
  const caller: GroupCaller = {
    names,
    since: waitTime > 0 ? grantedAt : undefined,
    sendAway: () => undefined,
  };
  const sentAway = new Promise<never>((_, reject) => {
    caller.sendAway = (refused) => {
      if (!refused(request)) return;
      leave();
      reject(new LockClosedError(name));
    };
  });
  groups.add(caller);
  const until = waitTime > 0 ? grantedAt + waitTime : Infinity;
  const outage = () => names.map((each) => client.store.outageOf?.(each)).find((down) => down);
  const reply = await answerWithin(Promise.race([asked, sentAway]), name, {
    until,
    signal,
    outage,
    timer: timerAt,
  })
    .catch((error: unknown) => {
      leave();
      throw error;
    })
    .finally(() => groups.delete(caller));
  if (reply instanceof Error) {
    if (isSecondTry || !isWorthAnotherTry(reply)) throw reply;
    const left = waitTime > 0 ? Math.max(1, until - now()) : 0;
    return await requestAll(client, names, { ...request, waitTime: left }, true);
  }
  if (reply.granted) {
    if (isGone || client.refuses(request)) {
      // The client was closed after the grant, which has no tenure yet: no other code would release it.
      leave();
      throw new LockClosedError(name);
    }
    return reply.fencingTokens.map((fencingToken, index) => {
      const local = client.callers.queueOf(names[index] ?? '');
      const origin = { owner, grantedAt, leaseTime, fencingToken, queue };
      return client.begin(client.open(local, request.terms, origin));
    });
  }
  if (reply.holder !== undefined) client.acquisitions.releaseAgain(reply.name, reply.holder, grantedAt);
  trace?.waitsFor(reply.holder);
  return { ...refusedWith(reply), name: reply.name };
}
