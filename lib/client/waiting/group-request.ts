import { LockClosedError } from '../../api/errors.js';
import { isWorthAnotherTry } from '../../store/another-try.js';
import { now } from '../holding/deadline.js';
import type { Tenure } from '../holding/tenure.js';
import type { LockClient } from '../lock-client.js';
import { answerWithin } from './answer-within.js';
import { answerOf } from './request.js';
import { type Busy, isRefusal, refusedWith, type WaitRequest } from './waiting.js';

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
  let sendAway: (refused: (request: WaitRequest) => boolean) => void;
  const sentAway = new Promise<never>((_, reject) => {
    sendAway = (refused) => {
      if (refused(request)) reject(new LockClosedError(name));
    };
    groups.add(sendAway);
  });
  const until = waitTime > 0 ? grantedAt + waitTime : Infinity;
  const outage = () => names.map((each) => client.store.outageOf?.(each)).find((down) => down);
  const reply = await answerWithin(Promise.race([asked, sentAway]), name, { until, signal, outage })
    .catch((error: unknown) => {
      // Released before the caller is told that it has left.
      giveUp(false);
      throw error;
    })
    .finally(() => groups.delete(sendAway));
  if (reply instanceof Error) {
    if (!isSecondTry && isWorthAnotherTry(reply)) return await requestAll(client, names, request, true);
    throw reply;
  }
  if (reply.granted) {
    if (client.refuses(request)) {
      // The client was closed after the grant, which has no tenure yet: no other code would release it.
      giveUp(false);
      throw new LockClosedError(name);
    }
    return reply.fencingTokens.map((fencingToken, index) => {
      const local = client.callers.queueOf(names[index] ?? '');
      const origin = { owner, grantedAt, leaseTime, fencingToken, queue };
      return client.begin(client.open(local, request.terms, origin));
    });
  }
  trace?.waitsFor(reply.holder);
  return { ...refusedWith(reply), name: reply.name };
}
