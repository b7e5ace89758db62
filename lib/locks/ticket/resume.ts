import type { LockClient } from '../../client/lock-client.js';
import { currentScope, owningScope } from '../../client/scope/scope.js';
import { LockLostError } from '../../api/errors.js';
import { isLockKindMismatchError } from '../../api/error-guards.js';
import { callOf } from '../call.js';
import type { Lease } from '../../api/lock.js';
import { lockOfKind } from '../kinds.js';
import { readTicket, type Ticket } from './ticket.js';
import { transfersOf } from './hand-over.js';

/** Continues the lease of a ticket, once. */
export async function resume(client: LockClient, text: unknown): Promise<Lease> {
  const ticket = readTicket(text, client.options.keyPrefix);
  const { name, owner, leaseTime, token, keepUntil, label } = ticket;
  const transfers = transfersOf(client, name);
  const lock = lockOfKind(client, name, ticket.kind, ticket.permits);
  const inside = currentScope();
  const site = client.capturedCalls.take(label, resume, 4);
  const call = callOf(client, 0, { inside, into: owningScope(), site, byHand: false }, { label });
  // Only an answer of the store shows how much of this time is left.
  const keepFor = Math.max(0, keepUntil - ticket.date);
  const request = { name, owner, leaseTime, leastToken: token + 1, inside, keepFor };
  const resumed = await transfers
    .run(() => transfers.resume(lock.queue, request))
    .catch((error: unknown) => {
      // The name is now in use as another kind of lock.
      if (isLockKindMismatchError(error)) throw refused(ticket, 'taken', error);
      throw error;
    });
  if ('state' in resumed) throw refused(ticket, resumed.date >= ticket.end ? 'expired' : resumed.state);
  const { tenure, date } = resumed;
  // A scope that has the lock for reading re-enters its own hold. A permit is a new hold.
  const isEntered = lock.findHold(call)?.held === true;
  const lease = lock.begin(tenure, isEntered ? { ...call, into: undefined } : call);
  if (keepUntil > date) lease.minHoldTime = keepUntil - date;
  lease.giveOut(lease);
  return lease;
}

const REFUSALS = {
  expired: 'the ticket came too late',
  taken: 'the ticket has been used, or the lock was taken away',
  deleted: 'the ticket has been used and its lease released, or the lock was taken away',
};

function refused(
  { name, owner }: Ticket,
  reason: 'expired' | 'taken' | 'deleted',
  error?: unknown,
): LockLostError {
  const cause = new Error(REFUSALS[reason], { cause: error });
  return new LockLostError(name, { reason, owner, cause });
}
