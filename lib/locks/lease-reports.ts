import { siteOf } from '../client/scope/call-site.js';
import { afterInput } from '../runtime/runtime.js';
import { inQuotes } from '../runtime/text.js';
import type { LeaseShare } from './held-lease.js';
import type { Hold } from './hold.js';

// An event, and one warning per label, about a lease that outlives the lease it has entered, or that its caller has
// dropped.

/** Leases that have been reported once. */
const reported = new WeakSet<LeaseShare>();

/**
 * Reports leases that outlive the lease they have entered. Leases that end in the same turn of the event loop count as
 * nested: they belong to streams that are unsubscribed together.
 * @param entered the remaining leases
 */
export function watchOutliving(hold: Hold, outer: LeaseShare, entered: readonly LeaseShare[]): void {
  afterInput(() => {
    for (const lease of entered) {
      if (!lease.held || reported.has(lease)) continue;
      reported.add(lease);
      reportOutliving(hold, lease, outer);
    }
  });
}

function reportOutliving(
  { client, name, owner }: Hold,
  { label, site }: LeaseShare,
  outer: LeaseShare,
): void {
  const { events, capturedCalls } = client;
  if (!events.observed && !capturedCalls.mayBeNews(OUTLIVED, label)) return;
  const at = siteOf(site);
  const outerLabel = outer.label;
  const outerAt = siteOf(outer.site);
  events.next({ type: 'outlived', name, label, owner, at, outerLabel, outerAt });
  if (!capturedCalls.isNews(OUTLIVED, label, at)) return;
  client.warn({
    code: OUTLIVED,
    message:
      `The lock "${inQuotes(name)}" is still held by a call that has entered it again, ${described(label, at)}, after the end of ` +
      `the call that it shares the lock with, ${described(outerLabel, outerAt)}. A nested call that is waited for ends ` +
      'first. Either nothing waits for this one, as after Promise.race, a Promise.all that has failed, or a forgotten await. Or a ' +
      'shared queue, pool or batch has started the work of another request in the async context of the holder, so that two were ' +
      'inside at once: add the task as AsyncResource.bind(task) of node:async_hooks, or acquire the lock with reentrant: false',
  });
}

/** Reports a renewed lease that no code can release any more. */
export function reportAbandoned({ client, name, owner }: Hold, lease: LeaseShare): void {
  const { label } = lease;
  const at = siteOf(lease.site);
  client.events.next({ type: 'abandoned', name, label, owner, heldFor: lease.heldFor(), at });
  if (!client.capturedCalls.isNews(ABANDONED, label, at)) return;
  client.warn({
    code: ABANDONED,
    message:
      `No code is left that could release the lock "${inQuotes(name)}" (owner ${owner}): its lease was acquired by hand, ` +
      `${described(label, at)}, and thrown away. The lock stays held, and is renewed for as long as the process lives. A ` +
      'caller that stops waiting, as Promise.race does, gets the lock all the same: bound the wait by waitTime or signal, ' +
      'hold the lock by using, or bound each hold by maxHoldTime',
  });
}

const OUTLIVED = 'lease-outlived';
const ABANDONED = 'lease-abandoned';

const described = (label: string, at: string | undefined): string =>
  at === undefined ? `labelled "${inQuotes(label)}"` : `labelled "${inQuotes(label)}" at ${inQuotes(at)}`;
