import { type Captured, siteOf } from '../client/scope/call-site.js';
import type { LockClient } from '../client/lock-client.js';
import { afterInput } from '../runtime/runtime.js';
import { inQuotes } from '../runtime/text.js';

// Events, and one warning for each label, about leases that no nested call and no careful caller leaves behind.

interface ReportedHold {
  readonly name: string;
  readonly owner: string;
  readonly client: LockClient;
}

interface ReportedLease {
  readonly label: string;
  readonly held: boolean;
  /** Where it was asked for, if that was captured. */
  readonly site: Captured | undefined;
  heldFor(): number;
}

/** Each lease is reported once. */
const reported = new WeakSet<ReportedLease>();

/**
 * A lease has ended before those that have entered it. Those that end in the same turn of the event loop are nested all
 * the same: they are the leases of streams that are unsubscribed from together.
 * @param entered the leases that are left
 */
export function watchOutliving(
  hold: ReportedHold,
  outer: ReportedLease,
  entered: readonly ReportedLease[],
): void {
  afterInput(() => {
    for (const lease of entered) {
      if (!lease.held || reported.has(lease)) continue;
      reported.add(lease);
      reportOutliving(hold, lease, outer);
    }
  });
}

function reportOutliving(
  { client, name, owner }: ReportedHold,
  { label, site }: ReportedLease,
  outer: ReportedLease,
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
      `the call that it shares the lock with, ${described(outerLabel, outerAt)}. Nested calls end first: a shared queue, pool ` +
      'or batch may have started the work of another request in the async context of the holder, so that two were inside at ' +
      'once. Acquire the lock with reentrant: false, or add the task to the queue in runInScope',
  });
}

/** No code is left that could release the lease, and the watchdog renews it. */
export function reportAbandoned({ client, name, owner }: ReportedHold, lease: ReportedLease): void {
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
