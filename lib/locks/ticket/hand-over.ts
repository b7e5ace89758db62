import type { LockClient } from '../../client/lock-client.js';
import { now } from '../../client/holding/deadline.js';
import type { Transfers } from '../../client/waiting/transfers.js';
import { LockConfigError, LockLostError } from '../../api/errors.js';
import { inQuotes } from '../../runtime/text.js';
import type { Hold } from '../hold.js';
import type { LeaseShare } from '../held-lease.js';
import { ticketText } from './ticket.js';

/** @throws LockConfigError if the store cannot pass holds on */
export function transfersOf({ transfers, options }: LockClient, name: string): Transfers {
  if (transfers !== undefined) return transfers;
  const rule =
    options.location === 'nodes'
      ? 'has no leases that travel: two processes that resume one ticket could each get some of the nodes, and none a ' +
        'majority. Use connection for these'
      : 'has no leases that travel: its store does not pass a hold on from one owner to another';
  throw new LockConfigError(options.location, rule, { key: name });
}

/** @throws LockConfigError if the owner has further leases, or if the store cannot pass holds on */
export function assertTravels({ tenure, client, count }: Hold): void {
  const { name } = tenure;
  transfersOf(client, name);
  if (client.hasOtherMode(tenure)) {
    throw new LockConfigError(
      'handOver',
      `the lease on "${inQuotes(name)}" is one side of a read-write lock that this process holds for reading and writing: ` +
        'another process would go on beside it. Release the other side before',
      { key: name },
    );
  }
  if (count === 1) return;
  const rule =
    `the lease on "${inQuotes(name)}" shares its hold with ${String(count - 1)} more, as a nested acquisition does. ` +
    'Release the inner leases before, or hand over the lease of a lock that is held once';
  throw new LockConfigError('handOver', rule, { key: name });
}

/**
 * Hands a hold over to another process.
 * @param share the only lease of the hold
 * @param within ms for which the ticket is valid; undefined for the lease time
 * @returns the ticket
 */
export async function handOver(hold: Hold, share: LeaseShare, within: number | undefined): Promise<string> {
  const { tenure, client, kind } = hold;
  const { label } = share;
  const { name, queue } = tenure;
  const { leaseTime } = tenure.terms;
  hold.depart(share, now());
  const { keepFor = 0 } = hold;
  const span = Math.max(within ?? leaseTime, keepFor);
  const transfers = transfersOf(client, name);
  let loss: LockLostError | undefined;
  try {
    const passed = await transfers.run(() => transfers.handOver(tenure, span));
    if (!passed.granted) {
      // The store had lost the hold, and this process learns it only now.
      const { owner, forced } = tenure;
      loss = new LockLostError(name, { reason: passed.state, owner, forced });
      client.events.next({ type: 'lost', name, label: tenure.label, owner, reason: passed.state, forced });
      throw loss;
    }
    const { owner, fencingToken: token, date } = passed;
    const keepUntil = keepFor > 0 ? date + keepFor : 0;
    const { keyPrefix } = client.options;
    const permits = queue?.kind === 'semaphore' ? queue.capacity : 1;
    const times = { leaseTime, date, end: date + span, keepUntil };
    return ticketText({ keyPrefix, name, kind, permits, owner, token, ...times, label });
  } finally {
    hold.left(label, loss);
  }
}
